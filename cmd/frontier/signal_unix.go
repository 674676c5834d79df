// This file handles the signal for a checkpoint.

//go:build unix

package main

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

const onSignal = ", and on SIGUSR1"

// onDemand returns a channel that receives when a signal asks for a checkpoint, and a function that ends
// that.
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
	return demand, func() { // without signal.Stop: a late signal must not end the process
		close(done)
		running.Wait()
	}
}
