// This file lets a node's clock be wrong. The nodes' command is built with a time.Now that adds to the date, and not
// to the monotonic time, what a file says. At most one clock is wrong at a time.

package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	overlayOf = ".overlay"              // beside a command that has such clocks
	clockFile = "FRONTIER_FAULTS_CLOCK" // in a node's environment: its number, and the file with the errors of all, in nanoseconds
	warnTime  = 75 * time.Second        // within which a node must see that a clock is wrong
	nowBegins = "func Now() Time {"
	nowOfOurs = "func Now() Time { return shifted(realNow()) }\n\nfunc realNow() Time {"
	shifted   = `
var ahead *int64

func init() {
	if at, ok := syscall.Getenv("` + clockFile + `"); ok {
		f, err := syscall.Open(at[1:], syscall.O_RDONLY, 0)
		b, bad := syscall.Mmap(f, 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil || bad != nil {
			panic("there is no clock in " + at)
		}
		ahead = (*int64)(unsafe.Pointer(&b[8*(at[0]-'0')]))
	}
}

func shifted(t Time) Time {
	if ahead != nil {
		since := t.ext
		if t = t.Add(Duration(*ahead)); t.wall&hasMonotonic != 0 {
			t.ext = since
		}
	}
	return t
}
`
)

// overlay writes what go build -overlay wants, beside the command.
func overlay(binary string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	name := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, bad := os.ReadFile(name)
	ours := strings.NewReplacer(`_ "unsafe"`, `"syscall"; "unsafe"`, nowBegins, nowOfOurs).Replace(string(source)) + shifted
	list, _ := json.Marshal(map[string]any{"Replace": map[string]string{name: binary + ".time.go"}})
	if err = errors.Join(err, bad); err == nil && strings.Count(ours, "shifted(") != 2 {
		err = errors.New("the source of time.Now is not as expected")
	}
	if err == nil {
		err = errors.Join(os.WriteFile(binary+".time.go", []byte(ours), 0o666), os.WriteFile(binary+overlayOf, list, 0o666))
	}
	return err
}

// setClock makes the clock of a node wrong from now on, and all others right.
func (f *faulter) setClock(node int, by time.Duration) error {
	b := make([]byte, 8*nodeCount)
	binary.NativeEndian.PutUint64(b[8*node:], uint64(by))
	_, err := f.nodes.clocks.WriteAt(b, 0)
	return err
}

// ahead draws how wrong a clock is that is wrong by more than is allowed.
func (f *faulter) ahead() time.Duration {
	return time.Duration(2*f.r.IntN(2)-1) * f.between(3*time.Second, []time.Duration{10 * time.Second, time.Hour}[f.r.IntN(2)])
}

// clockOff lets a node start with a clock that is wrong by less than is allowed, and go on with it.
func (f *faulter) clockOff(s strike) {
	by := time.Duration(2*f.r.IntN(2)-1) * 800 * time.Millisecond
	f.nodes.kill(s.any)
	later := f.tell("%s is killed, back in %v, and ahead by %v from then on", nameOf(s.any), s.after, by)
	f.try(f.setClock(s.any, by))
	f.comeBack(s.after, f.nodes.nodes[s.any], later)
}

// clockWrong lets a node start with a clock that is wrong by more. It must end until the clock is right.
func (f *faulter) clockWrong(s strike) {
	p, by, span, warned := f.nodes.nodes[s.any], f.ahead(), f.between(15*time.Second, 25*time.Second), f.nodes.state().warned
	later := f.tell("%s is killed, and is ahead by %v when it starts", p.name, by)
	f.nodes.kill(s.any)
	f.try(f.setClock(s.any, by))
	f.try(p.begin())
	f.back.Go(func() {
		ends := f.supervise(s.any, span, func() error { return f.setClock(0, 0) })
		later("the clock of %s is right; it ended %d times by itself", p.name, ends)
		if ends == 0 && f.nodes.state().warned == warned {
			f.trouble("%s took part with a clock that was ahead by %v", p.name, by)
		}
	})
}

// clockJumps makes a clock wrong while its node runs. Then the owner ends or dies, at once, or when a node has said
// that a clock is wrong.
func (f *faulter) clockJumps(s strike) {
	by, warned, began, told := f.ahead(), f.nodes.state().warned, time.Now(), f.r.IntN(2) == 0
	later := f.tell("%s, by %v", nameOf(s.any), by)
	f.try(f.setClock(s.any, by))
	for told && f.nodes.state().warned == warned && s.ctx.Err() == nil && time.Since(began) < warnTime {
		wait(s.ctx, 100*time.Millisecond)
	}
	wait(s.ctx, f.between(0, 5*time.Second))
	owner := f.settled(s.ctx, true)
	if s.ctx.Err() != nil {
		return
	}
	if told && f.nodes.state().warned == warned {
		f.trouble("for %v no node has said that a clock is wrong", warnTime)
	}
	later("after %v, known: %v", time.Since(began).Round(time.Second), f.nodes.state().warned > warned)
	f.events[len(f.events)-1].at = time.Now()
	f.stop(owner, []os.Signal{kill, finish}[f.r.IntN(2)])
	f.back.Go(func() {
		for next := -1; next < 0 && time.Since(began) < backTime+warnTime; next = f.nodes.state().owner {
			time.Sleep(50 * time.Millisecond)
		}
		f.try(f.setClock(0, 0))
		f.comeBack(0, f.nodes.nodes[owner], later)
	})
}
