// Package verbs has the promises of a frontier's verbs as tests, to be run against each way to
// reach one: in the same process, and through a server.
package verbs

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// Frontier has the verbs that each way has.
type Frontier interface {
	Add(ctx context.Context, entries ...frontier.Entry) (int, error)
	Next(ctx context.Context) (frontier.Lease, error)
	TryNext() (frontier.Lease, time.Time, error)
	Done(l frontier.Lease, o frontier.Outcome) error
	Host(ctx context.Context, host string) (inspect.Host, error)
	Stats() frontier.Stats
	Pause(s scope.Scope) error
	Resume(s scope.Scope) error
	Delete(ctx context.Context, s scope.Scope) (int64, error)
}

// Leases is a Frontier that knows each lease by its ID: it has verbs for leases that are out, and refuses
// what comes for one that has ended. It shows everything about tries, refused entries and clocks.
type Leases interface {
	Frontier
	Contact(ctx context.Context, host string) (frontier.Lease, error)
	Join(l *frontier.Lease, group string) error
	HandBack(l frontier.Lease) (frontier.Lease, error)
	Extend(l *frontier.Lease, d time.Duration) error
	DoneContext(ctx context.Context, l frontier.Lease, o frontier.Outcome) ([]*frontier.EntryError, error)
}

// Stander is a Frontier whose hosts can sink.
type Stander interface {
	Frontier
	SetStanding(host string, levels int) error
}

// Loops is a Frontier with loops over leases.
type Loops interface {
	Frontier
	Leases(ctx context.Context) iter.Seq2[frontier.Lease, error]
	Work(ctx context.Context, n int, fn func(context.Context, frontier.Lease) (frontier.Outcome, error)) error
}

// Open opens a frontier with the given options, and closes it when the test ends.
type Open func(t *testing.T, o frontier.Options) Frontier

// Run tests each promise on a frontier of its own, in a bubble of package synctest: what Open opens
// must talk within the bubble, through net.Pipe rather than sockets. A case that needs more than the
// opened frontier has is skipped.
func Run(t *testing.T, open Open) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			missing := ""
			synctest.Test(t, func(t *testing.T) { missing = c.test(t, open(t, options())) })
			if missing != "" {
				t.Skip(missing) // outside the bubble, whose skips do not show
			}
		})
	}
}

// needs makes a case of a test that needs a Frontier or more. The case runs the test if it gets one
// that has that. Otherwise it returns what is missing.
func needs[F Frontier](test func(*testing.T, F)) func(*testing.T, Frontier) (missing string) {
	return func(t *testing.T, f Frontier) string {
		has, ok := f.(F)
		if !ok {
			return fmt.Sprintf("%T does not have the verbs of %v", f, reflect.TypeFor[F]())
		}
		test(t, has)
		return ""
	}
}

// The clocks of all cases.
const (
	delay     = 2 * time.Second
	leaseTime = time.Minute
)

func options() frontier.Options {
	return frontier.Options{Delay: frontier.FixedDelay(delay), LeaseTime: leaseTime}
}

var cases = []struct {
	name string
	test func(*testing.T, Frontier) (missing string)
}{
	{"add", needs(add)},
	{"refused", needs(refused)},
	{"order", needs(order)},
	{"meta", needs(meta)},
	{"lease", needs(lease)},
	{"nothing", needs(nothing)},
	{"due", needs(due)},
	{"delay", needs(delayKept)},
	{"cancel", needs(cancel)},
	{"done", needs(done)},
	{"ended", needs(ended)},
	{"links", needs(links)},
	{"putoff", needs(putOff)},
	{"failed", needs(failed)},
	{"force", needs(force)},
	{"expiry", needs(expiry)},
	{"tries", needs(tries)},
	{"extend", needs(extend)},
	{"handback", needs(handBack)},
	{"contact", needs(contact)},
	{"join", needs(join)},
	{"pause", needs(pause)},
	{"delete", needs(deleted)},
	{"host", needs(host)},
	{"standing", needs(standing)},
	{"crowd", needs(crowd)},
	{"leases", needs(leases)},
	{"work", needs(work)},
	{"workstops", needs(workStops)},
	{"workcut", needs(workCut)},
	{"workfails", needs(workFails)},
	{"workheld", needs(workHeld)},
}
