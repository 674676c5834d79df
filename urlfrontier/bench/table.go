package main

import (
	"fmt"
	"os"
	"slices"
	"time"
)

// timed prints one row: how long work takes, the number of items it returns, and the CPU time of both
// processes. work may append the time of each call to laps.
func (b *bench) timed(name string, work func(laps *[]time.Duration) (int, error)) error {
	var laps []time.Duration
	own := server{pid: os.Getpid()}
	spent, client, began := b.server.cpu(), own.cpu(), time.Now()
	n, err := work(&laps)
	took := time.Since(began)
	if err != nil {
		return err
	}
	spent, client = b.server.cpu()-spent, own.cpu()-client
	rate, p50, p99 := "", "", ""
	if len(laps) > 0 {
		slices.Sort(laps)
		p50, p99 = ms(laps[len(laps)/2]), ms(laps[len(laps)*99/100])
	} else {
		rate = fmt.Sprintf("%.0f", float64(n)/took.Seconds())
	}
	fmt.Fprintf(b.out, "%-44s %12s %12s %12s %12s %10s\n", name, rate, p50, p99,
		fmt.Sprintf("%.1f+%.1f s", spent.Seconds(), client.Seconds()), b.server.memory())
	return nil
}

func ms(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
