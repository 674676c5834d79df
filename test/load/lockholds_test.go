//go:build frontierholds && linux

// This file measures how long the lock of a frontier is held.

package load

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/watchlock"
)

// watchHolds measures from now on how long the lock of each frontier that is opened is held, in CPU
// time of the thread that holds it: who is preempted meanwhile, by the system or by another
// process, holds it no longer for that.
func watchHolds() *holds {
	w := &holds{}
	watchlock.Watch = w
	return w
}

// holds are how long the lock of the one frontier that is open was held.
type holds struct {
	from time.Duration // guarded by the lock that is watched

	mu      sync.Mutex // guards all below
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

func (w *holds) Taken() {
	runtime.LockOSThread()
	w.from = threadTime()
}

func (w *holds) Releasing() {
	took := threadTime() - w.from
	runtime.UnlockOSThread()
	w.mu.Lock()
	defer w.mu.Unlock()
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

// callers names the functions of package frontier that are being called, the first at
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

// take says what was measured, and begins anew.
func (w *holds) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.String()
	w.n, w.sum, w.longest = 0, 0, nil
	return out
}

func (w *holds) String() string {
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

// holdsWatched says whether holds are measured.
const holdsWatched = true
