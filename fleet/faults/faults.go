// This file draws faults and does them, one after the other. It does not know what they ought to lead to.

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// fault is a kind of fault.
type fault string

const (
	killOwner   fault = "kill owner"
	killOther   fault = "kill other"
	freezeOwner fault = "freeze owner"
	freezeOther fault = "freeze other"
	handOver    fault = "end owner" // SIGTERM
	endOther    fault = "end other"
	endThenKill fault = "end then kill" // the owner, and then the next
	killTwo     fault = "kill two"
	killAll     fault = "kill all"
	killFetcher fault = "kill fetcher"
	loseDisk    fault = "lose disk" // and the machine takes part again with a new one
	cutOwner    fault = "cut owner" // all its links, both ways
	cutOther    fault = "cut other"
	cutPair     fault = "cut pair"   // the owner and one other
	halfOpen    fault = "half open"  // the same, one way
	flapOwner   fault = "flap owner" // all its links, again and again
)

// kinds has each kind once for each share that it has.
var kinds = []fault{
	killOwner, killOwner, killOwner, killOther, freezeOwner, freezeOwner, freezeOther, handOver, handOver, endThenKill, endOther, killTwo, killAll, killFetcher, loseDisk, loseDisk,
}

// cuts are those of links.
var cuts = []fault{cutOwner, cutOwner, cutOwner, cutOther, cutPair, cutPair, halfOpen, halfOpen, flapOwner}

const (
	endTime  = 40 * time.Second // within which a node must end that gets SIGTERM
	backTime = 90 * time.Second // nodes that were started must have joined, and one must own the frontier
)

// event is a fault that was done.
type event struct {
	kind fault
	at   time.Time
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
}

// between returns a random span.
func (f *faulter) between(low, high time.Duration) time.Duration {
	return low + time.Duration(f.r.Int64N(int64(high-low)))
}

// settled waits until all processes are back and have joined, and, if owned, until a node owns the frontier.
func (f *faulter) settled(ctx context.Context, owned bool) (owner int) {
	f.back.Wait()
	for began, told := time.Now(), false; ; {
		owner, all := f.nodes.state()
		if all && (owner >= 0 || !owned) || ctx.Err() != nil {
			return owner
		}
		if !told && time.Since(began) > backTime {
			told = true
			f.trouble("for %v not all nodes have joined, or none owns the frontier", backTime)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// one does a fault of a random kind. Nothing else is down when it begins.
func (f *faulter) one(ctx context.Context, kind fault) {
	if wait(ctx, f.between(3*time.Second, 12*time.Second)); ctx.Err() != nil {
		return
	}
	owned := kind == killOwner || kind == freezeOwner || kind == handOver || kind == endThenKill || kind == killTwo || kind != cutOther && slices.Contains(cuts, kind)
	owner := f.settled(ctx, owned)
	if f.r.IntN(3) > 0 { // otherwise at the very moment
		wait(ctx, f.between(0, 8*time.Second))
		owner = f.settled(ctx, owned)
	}
	if ctx.Err() != nil {
		return
	}
	n := len(f.nodes.nodes)
	other := (max(owner, 0) + 1 + f.r.IntN(n-1)) % n
	if owner < 0 {
		other = f.r.IntN(n)
	}
	after := f.between(0, 20*time.Second)
	f.events = append(f.events, event{kind: kind, at: time.Now()})
	at := &f.events[len(f.events)-1]
	switch kind {
	case killOwner:
		f.kill(at, after, owner)
	case killOther:
		f.kill(at, after, other)
	case freezeOwner:
		f.freeze(at, f.between(time.Second, 20*time.Second), owner)
	case freezeOther:
		f.freeze(at, f.between(time.Second, 20*time.Second), other)
	case handOver:
		f.end(at, f.between(0, 5*time.Second), owner)
	case endThenKill:
		f.end(at, 0, owner)
		next := f.settled(ctx, true)
		wait(ctx, f.between(1500*time.Millisecond, 4*time.Second))
		if ctx.Err() == nil {
			f.kill(at, after, next)
		}
	case endOther:
		f.end(at, f.between(0, 5*time.Second), other)
	case killTwo:
		f.kill(at, after, owner, other)
	case killAll:
		f.kill(at, f.between(0, 5*time.Second), 0, 1, 2)
	case loseDisk:
		if owner >= 0 && f.r.IntN(2) == 0 {
			other = owner
		}
		f.lose(at, after, other)
	case cutOwner:
		f.cut(at, 1, f.nodes.links.around(owner)...)
	case cutOther:
		f.cut(at, 1, f.nodes.links.around(other)...)
	case flapOwner:
		f.cut(at, 12, f.nodes.links.around(owner)...)
	case cutPair:
		f.cut(at, 1, [2]int{owner, other}, [2]int{other, owner})
	case halfOpen:
		if f.r.IntN(2) == 0 {
			owner, other = other, owner
		}
		f.cut(at, 1, [2]int{owner, other})
	case killFetcher:
		p := f.fetchers[f.r.IntN(len(f.fetchers))]
		f.tell(at, "fetcher %s is back in %v", p.name, after)
		p.kill()
		f.comeBack(after, p)
	}
}

func (f *faulter) trouble(format string, args ...any) {
	f.troubles.Add(1)
	f.say("TROUBLE: "+format, args...)
}

func (f *faulter) tell(e *event, format string, args ...any) {
	f.say("FAULT %d: %s: %s", len(f.events), e.kind, fmt.Sprintf(format, args...))
}

// kill kills nodes at once, which come back after a while, each for itself.
func (f *faulter) kill(e *event, after time.Duration, nodes ...int) {
	names := ""
	for _, i := range nodes {
		names += f.nodes.nodes[i].name
	}
	f.tell(e, "%s, back in %v", names, after.Round(time.Millisecond))
	for _, i := range nodes {
		f.nodes.nodes[i].asked.Store(true)
		f.nodes.nodes[i].signal(kill)
	}
	for k, i := range nodes {
		<-f.nodes.nodes[i].ended
		f.nodes.gone(i)
		if k > 0 {
			after += f.between(0, 3*time.Second)
		}
		f.comeBack(after, f.nodes.nodes[i])
	}
}

// lose kills a node and removes its folder. After a while the others let it in with an empty one.
func (f *faulter) lose(e *event, after time.Duration, i int) {
	p, number := f.nodes.nodes[i], len(f.events)
	f.tell(e, "%s, back in %v", p.name, after.Round(time.Millisecond))
	p.kill()
	f.nodes.gone(i)
	err := os.RemoveAll(f.nodes.folders[i])
	f.back.Go(func() {
		time.Sleep(after)
		began := time.Now()
		for err == nil {
			if err = f.nodes.admit(i); err == nil {
				f.say("fault %d: %s is let in, after %v", number, p.name, time.Since(began).Round(time.Millisecond))
				err = p.begin()
				break
			}
			if time.Since(began) < backTime {
				err = nil
				time.Sleep(time.Second)
			}
		}
		if err != nil {
			f.trouble("%s does not take part again: %v", p.name, err)
		}
	})
}

// cut cuts links for a while, in some turns.
func (f *faulter) cut(e *event, turns int, ways ...[2]int) {
	span, names := f.between(time.Second, 40*time.Second)/time.Duration(turns), ""
	for _, w := range ways {
		if w[0] != rest && w[1] != rest {
			names += " " + nameOf(w[0]) + ">" + nameOf(w[1])
		}
	}
	f.tell(e, "%d times%s, for %v", turns, names, span.Round(time.Millisecond))
	all := func(do func(from, to int) error) {
		for _, w := range ways {
			if err := do(w[0], w[1]); err != nil {
				f.trouble("%v", err)
			}
		}
	}
	number := len(f.events)
	all(f.nodes.links.cut)
	f.back.Go(func() {
		for i := range turns {
			if i > 0 {
				time.Sleep(span)
				all(f.nodes.links.cut)
			}
			time.Sleep(span)
			all(f.nodes.links.mend)
		}
		f.say("fault %d: links are whole", number)
	})
}

// freeze stops a node's process for a while.
func (f *faulter) freeze(e *event, span time.Duration, i int) {
	f.tell(e, "%s, for %v", f.nodes.nodes[i].name, span.Round(time.Millisecond))
	p := f.nodes.nodes[i]
	p.signal(freeze)
	number := len(f.events)
	f.back.Go(func() {
		time.Sleep(span)
		p.signal(thaw)
		f.say("fault %d: %s goes on", number, p.name)
	})
}

// end ends a node in order, and starts it again.
func (f *faulter) end(e *event, after time.Duration, i int) {
	p := f.nodes.nodes[i]
	p.asked.Store(true)
	p.signal(finish)
	began := time.Now()
	timely := true
	select {
	case <-p.ended:
	case <-time.After(endTime):
		timely = false
		p.kill()
	}
	f.nodes.gone(i)
	f.tell(e, "%s, which took %v, exit %d, back in %v", p.name, time.Since(began).Round(time.Millisecond), p.cmd.ProcessState.ExitCode(), after.Round(time.Millisecond))
	if !timely || p.cmd.ProcessState.ExitCode() != 0 {
		f.trouble("node %s did not end in order within %v: exit %d", p.name, endTime, p.cmd.ProcessState.ExitCode())
	}
	f.comeBack(after, p)
}

// comeBack starts a process again after a while.
func (f *faulter) comeBack(after time.Duration, p *process) {
	number := len(f.events)
	f.back.Go(func() {
		time.Sleep(after)
		if err := p.begin(); err != nil {
			f.say("TROUBLE: %s was not started: %v", p.name, err)
			return
		}
		f.say("fault %d: %s is back", number, p.name)
	})
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
