// This file defines Service: its options, its parts, and how it starts and stops.

package serve

import (
	"cmp"
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
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Options configure a Service. The zero value serves without tokens, to this machine only.
type Options struct {
	// Console answers operators' requests. Set its Import, Adding, Leases and EndLeases to the Service's
	// methods Import, AddingTo, Leases and EndLeases. Nil means a new Console with Metrics.
	Console *console.Console
	// Metrics answers GET /metrics. Nil means no such path.
	Metrics http.Handler
	// Tokens maps clients' secrets to roles. Nil, without Certificates: every client may make every
	// request, under the host names localhost, loopback addresses, and Names.
	Tokens *Tokens
	// Certificates maps names in clients' TLS certificates to roles.
	Certificates map[string]Role
	// Names are further host names that requests without a token may use.
	Names []string
	// MaxBuffered bounds the bytes of requests held in memory. Zero means 64 MiB.
	MaxBuffered int64
	// MaxLease is the longest lease that a client may take or extend to: a client that dies keeps its
	// hosts from the others for that long. Zero means an hour; 30 days are the most.
	MaxLease time.Duration
	// MaxRequests bounds the requests under way; the Service refuses more, except /livez and /readyz. At
	// most 7 in 8 of them may wait for leases, contacts or streams. Zero means 4,096.
	MaxRequests int
	// Idle is how long a client may neither send nor read during a request. Zero means a minute.
	Idle time.Duration
	// Contacts is a file that records which hosts clients may be contacting. Clients outlive the server:
	// a new Service leaves these hosts alone until the clients report an end, or until the leases'
	// deadlines. Only one Service may use the file at a time. Empty: hosts are treated as after any
	// opening of the frontier.
	Contacts string
	// ContactsNow is what the clock shows now that Contacts was written by. Zero: it is this machine's.
	ContactsNow time.Time
	// Sync makes Contacts survive a power loss: each hand-out waits for fsync.
	Sync bool
	// Permit is asked before a lease is handed out or extended that ends at until; its error withholds it,
	// and the client gets status 503. Ready asks with the zero time, and must not wait. It is for servers
	// that hand out one at a time. Nil permits all.
	Permit func(ctx context.Context, until time.Time) error
	// Fleet answers operators about the fleet. Nil: the frontier is served by one machine.
	Fleet http.Handler
	// CheckValue judges a value that an import brings for another package, such as
	// urlfrontier.CheckValue. Nil accepts all.
	CheckValue func(key string, value []byte) error
	// Logger logs each request. Nil: none.
	Logger *slog.Logger
}

// Service serves a frontier. It is safe for concurrent use.
type Service struct {
	f        *frontier.Frontier
	views    *inspect.Inspector // at f
	o        Options
	log      *slog.Logger
	names    names
	streams  streams
	contacts contacts
	ended    ended
	once     once
	pages    pages
	part     part
	room     room          // bytes of requests and responses
	scans    chan struct{} // slots for scans of the whole frontier
	requests atomic.Int64  // under way
	waiting  atomic.Int64  // the waiting ones among them
	plain    atomic.Pointer[plainEnvelope]

	console *console.Console
	owned   bool // Close closes the console
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

// ErrWithheld is returned when Options.Permit withholds a lease.
var ErrWithheld = errors.New("serve: no lease may be handed out now")

// Frontier completes the options of a frontier to serve:
//
//   - priorities 1 to 16, from each URL's Envelope
//   - a fixed delay of 1 s, because a duration that a client reports may include its own queue
//   - failed URLs and expired leases return at once, as often as they fail; each try counts in
//     Lease.Attempt, also a probe of a host that only fails (see Quarantine, whose defaults decide when a
//     host is given up)
//   - finished URLs are kept, and the frontier stays open while clients may add
//
// Other fields keep their values.
func Frontier(o frontier.Options) frontier.Options {
	o.KeepOpen, o.Keep, o.Count = true, !o.NoDedup, true
	o.Priorities = cmp.Or(o.Priorities, Priorities)
	o.Prioritizer = cmp.Or[frontier.Prioritizer](o.Prioritizer, frontier.PrioritizerFunc(priorityOf))
	o.Delay = cmp.Or(o.Delay, frontier.FixedDelay(time.Second))
	o.Retry = cmp.Or[frontier.RetryPolicy](o.Retry, atOnce{})
	o.LeaseTime = cmp.Or(o.LeaseTime, 30*time.Second)
	o.Quarantine.CountTries = true
	return o
}

// atOnce retries a URL at once, without end: clients decide when to give up.
type atOnce struct{}

func (atOnce) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) { return 0, true }

// New returns a Service of f. Close the Service before f.
func New(f *frontier.Frontier, o Options) (*Service, error) {
	if f == nil {
		return nil, ErrNoFrontier
	}
	o.MaxBuffered = cmp.Or(o.MaxBuffered, 64<<20)
	o.MaxRequests = cmp.Or(o.MaxRequests, 4096)
	o.MaxLease = cmp.Or(o.MaxLease, time.Hour)
	if err := errors.Join(unit.CheckAll("", o)...); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	if o.MaxBuffered < 0 || o.MaxRequests < 0 {
		return nil, fmt.Errorf("serve: MaxBuffered is %d and MaxRequests %d; want 0 or more", o.MaxBuffered, o.MaxRequests)
	}
	if o.MaxLease > longestLease {
		return nil, fmt.Errorf("serve: MaxLease is %v; want 0 to %v", o.MaxLease, longestLease)
	}
	if err := console.CheckNames(o.Names); err != nil {
		return nil, fmt.Errorf("serve: %w", err)
	}
	for name, role := range o.Certificates {
		if role != Look && role != Crawl && role != Operate {
			return nil, fmt.Errorf("serve: Certificates: the role of %q is %d; want Look, Crawl or Operate", name, role)
		}
	}
	o.Idle = cmp.Or(o.Idle, time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	s := &Service{f: f, views: inspect.New(f), o: o, log: o.Logger, console: o.Console, scans: make(chan struct{}, maxScans)}
	now := f.Now()
	s.contacts.now, s.contacts.permit, s.contacts.ahead = f.Now, o.Permit, now.Sub(cmp.Or(o.ContactsNow, now))
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
		left, damage, err := s.contacts.begin(o.Contacts, now)
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

// MaxLease returns the longest lease that a client may have.
func (s *Service) MaxLease() time.Duration { return s.o.MaxLease }

// Frontier returns the frontier that is served.
func (s *Service) Frontier() *frontier.Frontier { return s.f }

// Inspector returns an Inspector of the frontier that is served.
func (s *Service) Inspector() *inspect.Inspector { return s.views }

// Handler answers the requests of docs/http.md.
func (s *Service) Handler() http.Handler { return s.handler }

// HTTP returns a server of Handler that bounds each connection's time and headers.
func (s *Service) HTTP() *http.Server {
	return &http.Server{
		Handler: s.handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// Closing is closed when Drain or Close begins.
func (s *Service) Closing() <-chan struct{} { return s.closing.Done() }

// begin registers a call, unless the Service is closing. The call ends with s.calls.Done.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.calls.Add(1)
	return true
}

// Drain refuses new requests, ends those that wait, and returns when the others have ended or with ctx's
// error.
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

// Close ends all requests, and closes the contacts' file and a Console that New made. The frontier stays
// open.
func (s *Service) Close() error {
	s.cutAll()
	s.pages.close()
	err := errors.Join(s.Drain(context.Background()), s.contacts.close())
	if s.owned {
		err = errors.Join(err, s.console.Close())
	}
	return err
}
