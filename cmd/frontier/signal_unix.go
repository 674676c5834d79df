// This file takes the signal that asks for a checkpoint.

//go:build unix

package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

const onSignal = ", and on SIGUSR1"

// onDemand returns a channel that has a value when a checkpoint is asked for, and what
// ends that.
func onDemand() (<-chan struct{}, func()) {
	signals, demand, done := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
			}
			select {
			case <-done:
				return
			case demand <- struct{}{}:
			}
		}
	})
	return demand, func() { // without signal.Stop: one that comes now must not end the process
		close(done)
		running.Wait()
	}
}
