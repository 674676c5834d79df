// Package conformance has the promises of a frontier's verbs as tests, to be run against each way to
// reach one: in the same process, and through a server.
package conformance

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Frontier has the verbs.
type Frontier interface {
	Add(ctx context.Context, entries ...frontier.Entry) (int, error)
	Next(ctx context.Context) (frontier.Lease, error)
	TryNext() (frontier.Lease, time.Time, error)
	Contact(ctx context.Context, host string) (frontier.Lease, error)
	Join(l *frontier.Lease, group string) error
	HandBack(l frontier.Lease) (frontier.Lease, error)
	Extend(l *frontier.Lease, d time.Duration) error
	Done(l frontier.Lease, o frontier.Outcome) error
	DoneContext(ctx context.Context, l frontier.Lease, o frontier.Outcome) ([]*frontier.EntryError, error)
	Host(ctx context.Context, host string) (frontier.HostInfo, error)
	Stats() frontier.Stats
	Pause(s frontier.Scope) error
	Resume(s frontier.Scope) error
	Delete(ctx context.Context, s frontier.Scope) (int64, error)
}

// Open opens a frontier with the given options, and closes it when the test ends.
type Open func(t *testing.T, o frontier.Options) Frontier

// Run tests each promise on a frontier of its own, in a bubble of package synctest: what Open opens
// must talk within the bubble, through net.Pipe rather than sockets.
func Run(t *testing.T, open Open) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.test(t, open) })
		})
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
	test func(*testing.T, Open)
}{
	{"add", add},
	{"order", order},
	{"lease", lease},
	{"nothing", nothing},
	{"delay", delayKept},
	{"cancel", cancel},
	{"done", done},
	{"links", links},
	{"putoff", putOff},
	{"failed", failed},
	{"force", force},
	{"expiry", expiry},
	{"extend", extend},
	{"handback", handBack},
	{"contact", contact},
	{"join", join},
	{"pause", pause},
	{"delete", deleted},
	{"host", host},
	{"crowd", crowd},
}
