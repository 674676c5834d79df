// This file is the Service: what it is made of, and how it begins and ends.

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Options configure a Service. The zero value serves without tokens, to this machine only.
type Options struct {
	// Console answers what operators ask for; its Import, Adding, Leases and EndLeases should be the
	// Service's methods Import, AddingTo, Leases and EndLeases. Nil: one is made, with Metrics.
	Console *console.Console
	// Metrics answers GET /metrics. Nil: there are none.
	Metrics http.Handler
	// Tokens say who may do what. Nil, without Certificates: everybody may do everything,
	// under the host names localhost, addresses of loopback, and Names.
	Tokens *Tokens
	// Certificates are the roles of clients by a name of their certificate (TLS).
	Certificates map[string]Role
	// Names are further host names under which requests without a token are answered.
	Names []string
	// MaxBuffered is the number of bytes of requests that may be in memory at once. Zero
	// means 64 MiB.
	MaxBuffered int64
	// MaxLease is the longest time for which a client may ask a lease, at once or by extending it: a client that
	// dies keeps its hosts from the others for as long. Zero means an hour; 30 days are the most.
	MaxLease time.Duration
	// MaxRequests bounds the requests under way; further ones must come again, except /livez and
	// /readyz. Of these 7 in 8 may wait for something: leases, a contact, a stream. Zero means 4,096.
	MaxRequests int
	// Idle is how long a client may neither send nor read in the middle of a request. Zero
	// means a minute.
	Idle time.Duration
	// Contacts is a file that keeps which hosts clients may be contacting. Clients outlive
	// the server: a new Service leaves these hosts alone until the clients say that they have
	// ended, or until the deadlines of the leases. Only one Service may use it at a time.
	// Empty: a host is left alone as after any opening of the frontier.
	Contacts string
	// Sync makes Contacts survive a loss of power, too: each hand-out waits for the medium.
	Sync bool
	// CheckValue says what is wrong with a value that an import brings for another package:
	// urlfrontier.CheckValue does. Nil: nothing is wrong.
	CheckValue func(key string, value []byte) error
	// Logger gets each request. Nil: none does.
	Logger *slog.Logger
}

// Service serves a frontier. It is safe for concurrent use.
type Service struct {
	f        *frontier.Frontier
	o        Options
	log      *slog.Logger
	names    names
	streams  streams
	contacts contacts
	ended    ended
	once     once
	pages    pages
	room     room          // of requests and of answers
	scans    chan struct{} // slots for what reads the whole frontier
	requests atomic.Int64  // under way
	waiting  atomic.Int64  // of these, those that wait for something
	plain    atomic.Pointer[plainEnvelope]

	console *console.Console
	owned   bool // the console
	handler http.Handler

	closing context.Context // ends when Drain or Close begins
	close   context.CancelFunc
	cut     context.Context // ends when Close begins
	cutAll  context.CancelFunc
	calls   sync.WaitGroup // requests under way
	mu      sync.Mutex     // guards closed together with calls
	closed  bool
}

// ErrNoFrontier is returned by New without one.
var ErrNoFrontier = errors.New("serve: no frontier")

// ErrClosing is returned once Drain or Close has begun.
var ErrClosing = errors.New("serve: the server is stopping")

// Frontier completes the options of a frontier that is served: priorities 1 to 16, taken
// from the envelope of each URL (Envelope), a fixed delay of 1 s, because what a client
// reports as duration may include its own queue, failed URLs and expired leases come again
// at once, as often as they fail, each try counts in Lease.Attempt, also a probe of a host
// that only fails (see Quarantine, by whose defaults hosts are given up), finished URLs are
// kept, and nothing ends while clients may add. Other fields stay as they are set.
func Frontier(o frontier.Options) frontier.Options {
	o.KeepOpen, o.Keep, o.Count = true, !o.NoDedup, true
	if o.Priorities == 0 {
		o.Priorities = Priorities
	}
	if o.Prioritizer == nil {
		o.Prioritizer = frontier.PrioritizerFunc(priorityOf)
	}
	if o.Delay == nil {
		o.Delay = frontier.FixedDelay(time.Second)
	}
	if o.Retry == nil {
		o.Retry = atOnce{}
	}
	if o.LeaseTime == 0 {
		o.LeaseTime = 30 * time.Second
	}
	o.Quarantine.CountTries = true
	return o
}

// atOnce tries a URL again for ever. Clients decide when it is enough.
type atOnce struct{}

func (atOnce) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) { return 0, true }

// New returns a Service of f, which is to be closed before f is.
func New(f *frontier.Frontier, o Options) (*Service, error) {
	if f == nil {
		return nil, ErrNoFrontier
	}
	if o.MaxBuffered == 0 {
		o.MaxBuffered = 64 << 20
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = 4096
	}
	if o.MaxLease == 0 {
		o.MaxLease = time.Hour
	}
	if err := errors.Join(unit.CheckAll("", o)...); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if o.MaxLease > longestLease {
		return nil, fmt.Errorf("serve: MaxLease is %v; want 0 to %v", o.MaxLease, longestLease)
	}
	if o.Idle == 0 {
		o.Idle = time.Minute
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{f: f, o: o, log: o.Logger, console: o.Console, scans: make(chan struct{}, maxScans)}
	s.contacts.now = f.Now
	if err := s.loadNames(context.Background()); err != nil {
		return nil, err
	}
	s.room.most = o.MaxBuffered
	if s.console == nil {
		var err error
		s.owned = true
		if s.console, err = console.New(f, console.Options{Metrics: o.Metrics, Import: s.Import, Adding: s.AddingTo, Leases: s.Leases, EndLeases: s.EndLeases, Crawls: s.Crawls, Clients: s.Clients, Logger: o.Logger}); err != nil {
			return nil, err
		}
	}
	s.closing, s.close = context.WithCancel(context.Background())
	s.cut, s.cutAll = context.WithCancel(context.Background())
	s.handler = s.routed()
	if o.Contacts != "" {
		s.contacts.log, s.contacts.sync = o.Logger, o.Sync
		left, damage, err := s.contacts.begin(o.Contacts, f.Now())
		if damage != nil {
			s.log.Warn("serve: a file is damaged: a host may be contacted while a client fetches from it", "file", o.Contacts, "error", damage)
		}
		if err == nil {
			err = s.inherit(left)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

// MaxLease is the longest time for which a client gets a lease.
func (s *Service) MaxLease() time.Duration { return s.o.MaxLease }

// Frontier is the one that is served.
func (s *Service) Frontier() *frontier.Frontier { return s.f }

// Handler answers the requests of docs/http.md.
func (s *Service) Handler() http.Handler { return s.handler }

// HTTP returns a server of Handler with bounds on what a connection may take.
func (s *Service) HTTP() *http.Server {
	return &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Closing is closed when Drain or Close begins.
func (s *Service) Closing() <-chan struct{} { return s.closing.Done() }

// begin counts a call, which ends with s.calls.Done, unless the Service is closing.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	return true
}

// Drain refuses new requests, ends those that wait, and returns when the others have ended,
// or with ctx's error.
func (s *Service) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.close()
	done := make(chan struct{})
	go func() { s.calls.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close ends all requests, and gives back what the Service has. The frontier stays open.
func (s *Service) Close() error {
	s.cutAll()
	s.pages.close()
	err := errors.Join(s.Drain(context.Background()), s.contacts.close())
	if s.owned {
		err = errors.Join(err, s.console.Close())
	}
	return err
}
