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
	overlayOf = ".overlay" // beside a command that has such clocks
	differ    = "fleet: clocks differ"
	notKnown  = "fleet: whether a clock is right is not known"
	clockFile = "FRONTIER_FAULTS_CLOCK" // in a node's environment: the file with its error, in nanoseconds
	warnTime  = 75 * time.Second        // within which somebody must see that a clock is wrong
	nowBegins = "func Now() Time {"
	nowOfOurs = "func Now() Time { return shifted(realNow()) }\n\nfunc realNow() Time {"
	shifted   = `package time

import (
	"syscall"
	"unsafe"
)

var ahead *int64

func init() {
	if name, ok := syscall.Getenv("` + clockFile + `"); ok {
		f, err := syscall.Open(name, syscall.O_RDONLY, 0)
		b, bad := syscall.Mmap(f, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
		if err != nil || bad != nil {
			panic("there is no clock in " + name)
		}
		ahead = (*int64)(unsafe.Pointer(&b[0]))
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
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, bad := os.ReadFile(filepath.Join(folder, "time.go"))
	if err = errors.Join(err, bad); err == nil && strings.Count(string(source), nowBegins) != 1 {
		err = errors.New("the source of time.Now is not as expected")
	}
	replace := map[string]string{}
	for name, content := range map[string]string{"time.go": strings.Replace(string(source), nowBegins, nowOfOurs, 1), "shifted.go": shifted} {
		replace[filepath.Join(folder, name)] = binary + "." + name
		if err == nil {
			err = os.WriteFile(binary+"."+name, []byte(content), 0o666)
		}
	}
	list, bad := json.Marshal(map[string]any{"Replace": replace})
	if err = errors.Join(err, bad); err == nil {
		err = os.WriteFile(binary+overlayOf, list, 0o666)
	}
	return err
}

// setClocks makes the clock of a node wrong from now on, and all others right.
func setClocks(dir string, node int, by time.Duration) (err error) {
	for i := range nodeCount {
		var ns int64
		if i == node {
			ns = int64(by)
		}
		f, bad := os.OpenFile(filepath.Join(dir, nameOf(i)+".clock"), os.O_WRONLY|os.O_CREATE, 0o666)
		if bad == nil {
			_, bad = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ns)), 0)
			bad = errors.Join(bad, f.Close())
		}
		err = errors.Join(err, bad)
	}
	return err
}

func (f *faulter) setClock(node int, by time.Duration) {
	if err := setClocks(f.nodes.dir, node, by); err != nil {
		f.trouble("%v", err)
	}
}

// wrong draws how wrong a clock is.
func (f *faulter) wrong(least, most time.Duration) time.Duration {
	d := f.between(least, most)
	if f.r.IntN(2) == 0 {
		return -d
	}
	return d
}

// clockOff lets a node start with a clock that is wrong by less than is allowed, and go on with it.
func (f *faulter) clockOff(s strike) {
	by := f.wrong(800*time.Millisecond, 801*time.Millisecond)
	f.nodes.kill(s.any)
	later := f.tell("%s is killed, back in %v, and ahead by %v from then on", nameOf(s.any), s.after, by)
	f.setClock(s.any, by)
	f.comeBack(s.after, f.nodes.nodes[s.any], later)
}

// clockWrong lets a node start with a clock that is wrong by more. It must end until the clock is right.
func (f *faulter) clockWrong(s strike) {
	p, by, span := f.nodes.nodes[s.any], f.wrong(3*time.Second, time.Hour), f.between(15*time.Second, 25*time.Second)
	later := f.tell("%s is killed, and is ahead by %v when it starts", p.name, by)
	f.nodes.kill(s.any)
	f.setClock(s.any, by)
	unknown := f.nodes.times(notKnown)
	if err := p.begin(); err != nil {
		f.trouble("%v", err)
	}
	f.back.Go(func() {
		ends := f.supervise(s.any, span, func() error { f.setClock(s.any, 0); return nil })
		later("the clock of %s is right; it ended %d times by itself", p.name, ends)
		if ends == 0 && f.nodes.times(notKnown) == unknown {
			f.trouble("%s took part with a clock that was ahead by %v", p.name, by)
		}
	})
}

// clockJumps makes a clock wrong while its node runs. Somebody must say so. Then the owner dies.
func (f *faulter) clockJumps(s strike) {
	by := f.wrong(3*time.Second, time.Hour)
	later := f.tell("%s, by %v", nameOf(s.any), by)
	said := f.nodes.times(notKnown) + f.nodes.times(differ)
	f.setClock(s.any, by)
	began := time.Now()
	for ; f.nodes.times(notKnown)+f.nodes.times(differ) == said; wait(s.ctx, 100*time.Millisecond) {
		if s.ctx.Err() != nil {
			return
		}
		if time.Since(began) > warnTime {
			f.trouble("for %v no node has said that a clock is wrong", warnTime)
			break
		}
	}
	owner := f.settled(s.ctx, true)
	later("known after %v; %s is killed", time.Since(began).Round(time.Second), nameOf(owner))
	f.events[len(f.events)-1].at = time.Now()
	f.nodes.kill(owner)
	f.back.Go(func() {
		for next := -1; next < 0 && time.Since(began) < backTime+warnTime; next, _ = f.nodes.state() {
			time.Sleep(50 * time.Millisecond)
		}
		f.setClock(0, 0)
		f.comeBack(0, f.nodes.nodes[owner], later)
	})
}
