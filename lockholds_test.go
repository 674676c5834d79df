//go:build frontierholds && linux

// This file measures how long the lock is held.

package frontier

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// WatchHolds measures from now on how long the lock is held, in CPU time of the
// thread that holds it: who is preempted meanwhile, by the system or by another
// process, holds it no longer for that.
func (f *Frontier) WatchHolds() *Holds {
	w := &Holds{}
	f.mu.Lock()
	f.mu.Watcher = w
	w.Taken()
	f.mu.Unlock()
	return w
}

// Holds are how long a frontier's lock was held. It is guarded by that lock.
type Holds struct {
	from    time.Duration
	n       int
	sum     time.Duration
	longest []hold // descending
}

type hold struct {
	took  time.Duration
	where string
}

const (
	holdsKept = 8
	holdsFrom = 200 * time.Microsecond // from here on the place is kept, too
)

func (w *Holds) Taken() {
	runtime.LockOSThread()
	w.from = threadTime()
}

func (w *Holds) Releasing() {
	took := threadTime() - w.from
	runtime.UnlockOSThread()
	w.n++
	w.sum += took
	if took < holdsFrom || len(w.longest) == holdsKept && w.longest[holdsKept-1].took >= took {
		w.longest = append(w.longest, hold{took: took})
	} else {
		w.longest = append(w.longest, hold{took, callers()})
	}
	slices.SortFunc(w.longest, func(a, b hold) int { return cmp.Compare(b.took, a.took) })
	w.longest = w.longest[:min(holdsKept, len(w.longest))]
}

// callers names the functions of this package that are being called, the first at
// the end.
func callers() string {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(4, pcs[:])])
	var names []string
	for more := true; more; {
		var x runtime.Frame
		x, more = frames.Next()
		if _, name, ok := strings.Cut(x.Function, "frontier."); ok {
			names = append(names, strings.TrimPrefix(name, "(*Frontier)."))
		}
	}
	return strings.Join(names, " < ")
}

func threadTime() time.Duration {
	const threadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPU, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}

// TakeHolds tells what was measured, and begins anew.
func (f *Frontier) TakeHolds(w *Holds) string {
	f.mu.Lock()
	out := w.String()
	w.n, w.sum, w.longest = 0, 0, nil
	f.mu.Unlock()
	return out
}

func (w *Holds) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d holds, %v each; longest:", w.n, w.sum/time.Duration(max(1, w.n)))
	for _, x := range w.longest {
		fmt.Fprintf(&b, " %v", x.took)
	}
	for _, x := range w.longest {
		if x.where != "" {
			fmt.Fprintf(&b, "\n    %v in %s", x.took, x.where)
		}
	}
	return b.String()
}

// HoldsWatched says whether holds are measured.
const HoldsWatched = true
