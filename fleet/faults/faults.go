// This file draws faults and does them, one after the other. It does not know what they ought to lead to.

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// need is what a kind of fault wants of the system.
type need int

const (
	ofLinks  need = 1 << iota // networks of the nodes' own
	ofDisks                   // file systems of their own
	ofClocks                  // a command whose clock can be wrong
)

// kind is a kind of fault.
type kind struct {
	name   string
	share  int // of all faults
	needs  need
	outage bool // a node must own the frontier, and may lose it
	do     func(f *faulter, s strike)
}

// strike says which nodes a fault hits.
type strike struct {
	ctx               context.Context
	owner, other, any int
	after             time.Duration // until a process that was killed is back
}

var kinds = []kind{
	{"kill owner", 3, 0, true, func(f *faulter, s strike) { f.kill(s.after, s.owner) }},
	{"kill other", 1, 0, false, func(f *faulter, s strike) { f.kill(s.after, s.other) }},
	{"kill turn", 0, 0, true, func(f *faulter, s strike) { f.kill(s.after/2, len(f.events)%nodeCount) }},
	{"kill two", 1, 0, true, func(f *faulter, s strike) { f.kill(s.after, s.owner, s.other) }},
	{"kill all", 1, 0, true, func(f *faulter, s strike) { f.kill(s.after/4, 0, 1, 2) }},
	{"kill fetcher", 1, 0, false, (*faulter).killFetcher},
	{"freeze owner", 2, 0, true, func(f *faulter, s strike) { f.freeze(s.owner) }},
	{"freeze other", 1, 0, false, func(f *faulter, s strike) { f.freeze(s.other) }},
	{"end owner", 2, 0, true, func(f *faulter, s strike) { f.end(s.after/4, s.owner) }}, // SIGTERM
	{"end other", 1, 0, false, func(f *faulter, s strike) { f.end(s.after/4, s.other) }},
	{"end then kill", 1, 0, true, (*faulter).endThenKill},                                                      // the owner, and then the next
	{"lose disk", 2, 0, false, (*faulter).lose},                                                                // and the machine takes part again with a new one
	{"cut owner", 3, ofLinks, true, func(f *faulter, s strike) { f.cut(1, f.nodes.links.around(s.owner)...) }}, // all its links, both ways
	{"cut other", 1, ofLinks, false, func(f *faulter, s strike) { f.cut(1, f.nodes.links.around(s.other)...) }},
	{"cut pair", 2, ofLinks, true, func(f *faulter, s strike) { f.cut(1, [2]int{s.owner, s.other}, [2]int{s.other, s.owner}) }},
	{"half open to", 1, ofLinks, true, func(f *faulter, s strike) { f.cut(1, [2]int{s.other, s.owner}) }}, // the same, one way
	{"half open from", 1, ofLinks, true, func(f *faulter, s strike) { f.cut(1, [2]int{s.owner, s.other}) }},
	{"flap owner", 1, ofLinks, true, func(f *faulter, s strike) { f.cut(12, f.nodes.links.around(s.owner)...) }}, // again and again
	{"fill owner", 2, ofDisks, true, func(f *faulter, s strike) { f.fill(s.owner) }},
	{"fill other", 1, ofDisks, false, func(f *faulter, s strike) { f.fill(s.other) }},
	{"stall owner", 1, ofDisks, true, func(f *faulter, s strike) { f.stall(1, s.owner) }}, // no write ends
	{"stall other", 1, ofDisks, false, func(f *faulter, s strike) { f.stall(1, s.other) }},
	{"slow owner", 1, ofDisks, true, func(f *faulter, s strike) { f.stall(30, s.owner) }}, // the same, again and again
	{"slow other", 1, ofDisks, false, func(f *faulter, s strike) { f.stall(30, s.other) }},
	{"clock off", 1, ofClocks, false, (*faulter).clockOff},     // by less than is allowed
	{"clock wrong", 1, ofClocks, false, (*faulter).clockWrong}, // by more when a node starts
	{"clock jumps", 1, ofClocks, true, (*faulter).clockJumps},  // while it runs, and then the owner ends or dies
}

const (
	endTime  = 40 * time.Second // within which a node must end that gets SIGTERM
	backTime = 90 * time.Second // nodes that were started must have joined, and one must own the frontier
)

// event is a fault that was done.
type event struct {
	kind
	at time.Time
}

// faulter does faults to processes. One goroutine uses it.
type faulter struct {
	r        *rand.Rand
	nodes    *cluster
	fetchers []*process
	say      func(string, ...any)
	events   []event
	troubles atomic.Int64
	back     sync.WaitGroup // what is still to come back
	every    time.Duration  // between the beginnings of two faults; 0: random pauses
	next     time.Time      // when the latest was due
}

// between returns a random span.
func (f *faulter) between(low, high time.Duration) time.Duration {
	return low + time.Duration(f.r.Int64N(int64(high-low)))
}

// settled waits until all processes are back and have joined, and, if owned, until a node owns the frontier.
func (f *faulter) settled(ctx context.Context, owned bool) (owner int) {
	f.back.Wait()
	for began, told := time.Now(), false; ; {
		now := f.nodes.state()
		if !slices.Contains(now.joined[:], false) && (now.owner >= 0 || !owned) || ctx.Err() != nil {
			return now.owner
		}
		if !told && time.Since(began) > backTime {
			told = true
			f.trouble("for %v not all nodes have joined, or none owns the frontier", backTime)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// one does a fault. Nothing else is down when it begins.
func (f *faulter) one(ctx context.Context, k kind) {
	pause := f.between(3*time.Second, 12*time.Second)
	if f.every > 0 {
		f.next = f.next.Add(f.every)
		pause = time.Until(f.next)
	}
	if wait(ctx, pause); ctx.Err() != nil {
		return
	}
	owner := f.settled(ctx, k.outage)
	if f.every == 0 && f.r.IntN(3) > 0 { // otherwise at the very moment
		wait(ctx, f.between(0, 8*time.Second))
		owner = f.settled(ctx, k.outage)
	}
	if ctx.Err() != nil {
		return
	}
	other := (max(owner, 0) + 1 + f.r.IntN(nodeCount-1)) % nodeCount
	s := strike{ctx: ctx, owner: owner, other: other, any: other, after: f.between(0, 20*time.Second)}
	if f.r.IntN(2) == 0 {
		s.any = max(owner, 0)
	}
	f.events = append(f.events, event{kind: k, at: time.Now()})
	k.do(f, s)
}

func (f *faulter) trouble(format string, args ...any) {
	f.troubles.Add(1)
	f.say("TROUBLE: "+format, args...)
}

func (f *faulter) try(err error) {
	if err != nil {
		f.trouble("%v", err)
	}
}

// tell says what a fault does, and returns what says more of it later.
func (f *faulter) tell(format string, args ...any) (later func(string, ...any)) {
	number := len(f.events)
	f.say("FAULT %d: %s: %s", number, f.events[number-1].name, fmt.Sprintf(format, args...))
	return func(format string, args ...any) { f.say("fault %d: %s", number, fmt.Sprintf(format, args...)) }
}

// kill kills nodes at once, which come back after a while, each for itself.
func (f *faulter) kill(after time.Duration, nodes ...int) {
	names := ""
	for _, i := range nodes {
		names += nameOf(i)
	}
	later := f.tell("%s, back in %v", names, after.Round(time.Millisecond))
	for _, i := range nodes {
		f.nodes.nodes[i].asked.Store(true)
		f.nodes.nodes[i].signal(kill)
	}
	for k, i := range nodes {
		f.nodes.kill(i)
		if k > 0 {
			after += f.between(0, 3*time.Second)
		}
		f.comeBack(after, f.nodes.nodes[i], later)
	}
}

func (f *faulter) killFetcher(s strike) {
	p := f.fetchers[f.r.IntN(len(f.fetchers))]
	later := f.tell("fetcher %s is back in %v", p.name, s.after)
	p.kill()
	f.comeBack(s.after, p, later)
}

func (f *faulter) endThenKill(s strike) {
	f.end(0, s.owner)
	next := f.settled(s.ctx, true)
	wait(s.ctx, f.between(1500*time.Millisecond, 4*time.Second))
	if s.ctx.Err() == nil {
		f.kill(s.after, next)
	}
}

// lose kills a node and removes its folder. After a while the others let it in with an empty one.
func (f *faulter) lose(s strike) {
	p := f.nodes.nodes[s.any]
	later := f.tell("%s, back in %v", p.name, s.after.Round(time.Millisecond))
	f.nodes.kill(s.any)
	err := os.RemoveAll(f.nodes.folders[s.any])
	f.back.Go(func() {
		time.Sleep(s.after)
		began := time.Now()
		for err = errors.Join(err, f.nodes.admit(s.any)); err != nil && time.Since(began) < backTime; err = f.nodes.admit(s.any) {
			time.Sleep(time.Second)
		}
		if err == nil {
			later("%s is let in, after %v", p.name, time.Since(began).Round(time.Millisecond))
			err = p.begin()
		}
		if err != nil {
			f.trouble("%s does not take part again: %v", p.name, err)
		}
	})
}

// during does something and undoes it after a span, in some turns.
func (f *faulter) during(what string, turns int, span time.Duration, do, undo func() error) {
	span /= time.Duration(turns)
	later := f.tell("%d times %s, for %v", turns, what, span.Round(time.Millisecond))
	f.try(do())
	f.back.Go(func() {
		for i := range turns {
			if i > 0 {
				time.Sleep(span)
				f.try(do())
			}
			time.Sleep(span)
			f.try(undo())
		}
		later("over")
	})
}

// cut cuts links for a while, in some turns.
func (f *faulter) cut(turns int, ways ...[2]int) {
	names := ""
	for _, w := range ways {
		if w[0] != rest && w[1] != rest {
			names += " " + nameOf(w[0]) + ">" + nameOf(w[1])
		}
	}
	all := func(do func(from, to int) error) func() error {
		return func() (err error) {
			for _, w := range ways {
				err = errors.Join(err, do(w[0], w[1]))
			}
			return err
		}
	}
	f.during(names, turns, f.between(time.Second, 40*time.Second), all(f.nodes.links.cut), all(f.nodes.links.mend))
}

// freeze stops a node's process for a while.
func (f *faulter) freeze(i int) {
	p := f.nodes.nodes[i].cmd.Process
	f.during(nameOf(i), 1, f.between(time.Second, 20*time.Second), func() error { return p.Signal(freeze) }, func() error { return p.Signal(thaw) })
}

// end ends a node in order, and starts it again.
func (f *faulter) end(after time.Duration, i int) {
	f.comeBack(after, f.nodes.nodes[i], f.stop(i, finish))
}

// stop kills a node, or ends it in order, or it must say why that is impossible.
func (f *faulter) stop(i int, by os.Signal) (later func(string, ...any)) {
	p, began := f.nodes.nodes[i], time.Now()
	p.asked.Store(true)
	p.signal(by)
	select {
	case <-p.ended:
	case <-time.After(endTime):
	}
	cause := f.nodes.state().causes[i]
	f.nodes.kill(i)
	status := p.cmd.ProcessState.ExitCode()
	later = f.tell("%v of %s took %v, exit %d %s", by, p.name, time.Since(began).Round(time.Millisecond), status, cause)
	if by == finish && status != 0 && (status != 1 || cause == "") {
		f.trouble("node %s did not end in order within %v: exit %d", p.name, endTime, status)
	}
	return later
}

// comeBack starts a process again after a while.
func (f *faulter) comeBack(after time.Duration, p *process, later func(string, ...any)) {
	f.back.Go(func() {
		time.Sleep(after)
		f.try(p.begin())
		later("%s is back", p.name)
	})
}

// supervise starts a node again whenever it ends by itself, until what is wrong was mended after a span and the node
// has joined. It returns how often that was. The node must say why it ends.
func (f *faulter) supervise(i int, span time.Duration, mend func() error) (ends int) {
	p := f.nodes.nodes[i]
	p.asked.Store(true)
	mended := false
	for began := time.Now(); time.Since(began) < span+backTime; time.Sleep(time.Second) {
		if !mended && time.Since(began) > span {
			mended = true
			f.try(mend())
		}
		joined := f.nodes.state().joined[i]
		if p.asked.Store(!mended || !joined); p.hasEnded() {
			ends++
			if status, cause := p.cmd.ProcessState.ExitCode(), f.nodes.state().causes[i]; cause == "" || status != 1 {
				f.trouble("node %s ended with status %d, and said %q of the cause", p.name, status, cause)
			}
			f.nodes.gone(i)
			f.try(p.begin())
			p.asked.Store(true)
		} else if mended && joined {
			return ends
		}
	}
	f.trouble("for %v %s has not joined again", backTime, p.name)
	return ends
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
