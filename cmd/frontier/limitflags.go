// This file reads crawl's flags that limit each host.

package main

import (
	"time"

	"github.com/seed-7440039f/frontier/scope"
)

// limitFlags are these flags before they are checked.
type limitFlags struct {
	scope.Limits
	bytes byteSize
}

func (l *limitFlags) define(fs *flagSet) {
	fs.Int64Var(&l.Served, "limit-pages", 0, "pages that each host is asked for in a -limit-period (default: any); the -limit flags are kept with -dir until others are given")
	fs.Var(l.bytes.set(0), "limit-bytes", "`bytes` that each host may send in a -limit-period; k, M, G may follow (default: any)")
	fs.Int64Var(&l.Errors, "limit-errors", 0, "failed fetches of each host in a -limit-period (default: any)")
	fs.DurationVar(&l.Period, "limit-period", 0, "`time` after which these three are counted anew (default: never)")
	fs.Int64Var(&l.Waiting, "limit-waiting", 0, "URLs of each host that wait at most; more are dropped, as of a trap (default: any)")
	fs.IntVar(&l.Depth, "limit-depth", 0, "greatest number of links from a seed, of each host (default: any)")
}

// apply checks the flags and completes the settings.
func (l *limitFlags) apply(s *settings) {
	l.Bytes = int64(l.bytes)
	for _, x := range []struct {
		name string
		n    int64
	}{{"limit-pages", l.Served}, {"limit-bytes", l.Bytes}, {"limit-errors", l.Errors}, {"limit-waiting", l.Waiting}, {"limit-depth", int64(l.Depth)}, {"limit-period", 0}} {
		if s.given(x.name) {
			s.limits = &l.Limits
		} else {
			s.silence(x.name)
		}
		s.badIf(x.n < 0, "want >= 0", x.name)
	}
	if p := l.Period; p != 0 && (p < time.Millisecond || p > 100*366*24*time.Hour) {
		s.bad("want 1ms to 100 years", "limit-period")
	}
}
