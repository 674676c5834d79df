// This file has the life of a node: its options, its sessions one after the other, and what it claims.

package fleet

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/internal/durablefs"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/internal/unit"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
)

const (
	defaultTTL      = 15 * time.Second
	minTTL          = 5 * time.Second
	defaultLog      = 64 << 20
	maxParts        = 4096
	drained, leaves = 1, 2 // Node.leaving

	// turn is how long a node leaves a free partition to each node that has a better right to it.
	turn = 2 * time.Second
	// retry is how long a node leaves a partition alone that it could not open.
	retry = 5 * time.Second
	// settle is how long another node must have had a better right to a partition before its owner hands it over.
	settle = time.Minute
)

// Options configure a Node.
type Options struct {
	// Node is this node's name in the fleet: 1 to 64 letters, digits, dots, underscores and hyphens.
	Node string
	// Dir is a folder of this node alone, for stores and copies. It is made if there is none.
	Dir string
	// Engine is what the nodes share. The caller closes it after the node.
	Engine Engine
	// Address is where other nodes reach Handler, such as http://10.0.0.1:8350.
	Address string
	// Client makes requests to other nodes. Nil means http.DefaultClient.
	Client *http.Client

	// Partitions is the number of frontiers that the fleet divides its hosts among, up to 4096. The
	// first node determines it for ever. Zero means 1.
	Partitions int
	// TTL is how long a node may go on without a word from the engine. It then stops handing out, and
	// another takes its place a tenth later. It must be longer than the engine needs to choose a new
	// leader, and the same at all nodes. Zero means 15 s; the minimum is 5 s.
	TTL time.Duration
	// Store configures the store of each partition. Its Sync is not needed: the engine syncs.
	Store spill.Options
	// CopyAfter is how many bytes of log a partition has before the owner makes a new copy. All nodes
	// fetch it, and the log before it goes. Zero means 64 MiB.
	CopyAfter int64
	// Open opens the frontier of a partition that this node owns from now on.
	Open func(ctx context.Context, o Opening) (Opened, error)
	// Logger gets what an operator should see. Nil means none.
	Logger *slog.Logger

	elapsed func() time.Duration // sinceBoot but in tests
	now     func() time.Time     // time.Now but in tests
	open    func(dir string, o spill.Options) (store, error)
}

// Opening is what a node needs to open a partition's frontier.
type Opening struct {
	Partition int
	// Spill is the frontier's store. When it fails for good, as when another node has taken over,
	// its errors wrap storage.ErrReopen.
	Spill storage.Spill
	// ContactedAt is for the frontier's option of this name.
	ContactedAt time.Time
	// Leases is what Release of the owner before returned, or nil if it did not end in order.
	Leases []byte
	// Permit is asked before a lease is handed out or extended that ends at until. While it returns an
	// error nothing may be handed out. It waits for the engine now and then, but not if until is the zero
	// time, which asks whether anything may be handed out. It may be called from any number of goroutines.
	Permit func(ctx context.Context, until time.Time) error
	// State is that of the node.
	State func() State
}

// Opened is a partition's frontier at work.
type Opened interface {
	// Release stops handing out, closes the frontier, and returns the leases that clients still have,
	// in a form that the next owner's Open understands.
	Release(ctx context.Context) (leases []byte, err error)
	// Close does the same at once, when another node may own the partition already.
	Close() error
}

// Node is one of the machines of a fleet. It is safe for concurrent use.
type Node struct {
	o       Options
	id      string // of the fleet
	log     *slog.Logger
	view    *view
	life    context.Context // ends with Leave or Close
	stop    context.CancelCauseFunc
	leaving atomic.Int32 // drained or leaves: it takes no partitions, and gives up those that it has
	session atomic.Pointer[session]
	running sync.WaitGroup

	mu     sync.Mutex
	owned  map[int]*logged       // guarded by mu; partitions that are claimed here; nil: not restored yet
	failed map[int]time.Duration // guarded by mu; when opening failed
	yields map[int]int           // guarded by mu; how often a partition was left to a node with a better right
	clocks map[string]clockSeen  // guarded by mu; those of other nodes
	cut    map[int]uint64        // guarded by mu; revision of the copy before which the log is gone

	fetching slot // one copy at a time
}

// Join makes this process a node of the fleet.
func Join(ctx context.Context, o Options) (*Node, error) {
	o.Partitions = cmp.Or(o.Partitions, 1)
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	o.CopyAfter = cmp.Or(o.CopyAfter, defaultLog)
	o.Client = cmp.Or(o.Client, http.DefaultClient)
	o.Logger = cmp.Or(o.Logger, slog.New(slog.DiscardHandler))
	if o.elapsed == nil {
		o.elapsed = sinceBoot
	}
	if o.now == nil {
		o.now = time.Now
	}
	if o.open == nil {
		o.open = func(dir string, o spill.Options) (store, error) { return spill.Open(dir, o) }
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	o.Engine = timely{o.Engine}
	if err := os.MkdirAll(o.Dir, 0o777); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	id, err := agree(ctx, &o)
	if err != nil {
		return nil, err
	}
	if err := tidyCopies(filepath.Join(o.Dir, copiesFolder)); err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	n := &Node{o: o, id: id, log: o.Logger, view: newView(o.elapsed), owned: map[int]*logged{}, failed: map[int]time.Duration{}, yields: map[int]int{}, clocks: map[string]clockSeen{}, cut: map[int]uint64{}, fetching: newSlot()}
	n.life, n.stop = context.WithCancelCause(context.Background())
	s, err := n.begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("fleet: join: %w", err)
	}
	n.running.Go(n.watch)
	if err := n.meet(ctx, s); err != nil {
		_ = s.write(ctx, func(r *sessionRow) { r.Dead = true })
		n.Close()
		return nil, fmt.Errorf("fleet: join: %w", err)
	}
	n.running.Go(n.watchClocks)
	n.running.Go(func() { n.live(s) })
	n.running.Go(n.fetchCopies)
	return n, nil
}

func (o *Options) validate() error {
	wrong := faults.List(unit.CheckAll("", *o))
	wrong.If(!IsName(o.Node), "Node is %q; want 1 to 64 letters, digits, dots, underscores and hyphens", o.Node)
	wrong.If(o.Dir == "", "Dir is empty; want a folder")
	at, err := url.Parse(o.Address)
	wrong.If(err != nil || at.Scheme == "" || at.Host == "", "Address is %q; want a URL as in http://10.0.0.1:8350", o.Address)
	wrong.If(o.Engine == nil, "Engine is nil")
	wrong.If(o.Open == nil, "Open is nil")
	wrong.If(o.Partitions < 1 || o.Partitions > maxParts, "Partitions is %d; want 1 to %d", o.Partitions, maxParts)
	wrong.If(o.TTL < minTTL, "TTL is %v; want at least %v", o.TTL, minTTL)
	wrong.If(o.CopyAfter < 0, "CopyAfter is %d; want >= 0", o.CopyAfter)
	return wrong.Of("fleet: options")
}

// IsName reports whether a node may have a name.
func IsName(s string) bool {
	return len(s) >= 1 && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-')
	}) < 0
}

// IsAddress reports whether s is an address at which a node's server can be reached: HOST:PORT.
func IsAddress(s string) bool {
	host, port, err := net.SplitHostPort(s)
	n, bad := strconv.ParseUint(port, 10, 16)
	return err == nil && bad == nil && host != "" && n != 0
}

// config is what all nodes must agree on.
type config struct {
	ID         string        `json:"id"` // of this fleet alone, made by its first node
	Partitions int           `json:"partitions"`
	TTL        time.Duration `json:"ttl_ns"`
}

// knownName is the file by which a node's folder knows its fleet.
const knownName = "fleet"

// agree stores the fleet's configuration, or compares it, and returns its ID. A node whose folder knows a
// fleet never makes another: its engine has lost everything then.
func agree(ctx context.Context, o *Options) (string, error) {
	known, err := os.ReadFile(filepath.Join(o.Dir, knownName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("fleet: %w", err)
	}
	mine := config{rand.Text(), o.Partitions, o.TTL}
	for {
		e, err := o.Engine.Get(ctx, configKey)
		switch {
		case err != nil:
		case e.Revision == 0 && known != nil:
			return "", fmt.Errorf("fleet: %s belongs to fleet %s, and the engine does not know it: it has lost its data, or is another", o.Dir, known)
		case e.Revision == 0:
			var value []byte
			if value, err = json.Marshal(mine); err == nil {
				_, err = o.Engine.Put(ctx, configKey, value, 0)
			}
		default:
			var theirs config
			if err := json.Unmarshal(e.Value, &theirs); err != nil {
				return "", fmt.Errorf("fleet: %s: %w", configKey, err)
			}
			if mine.ID = theirs.ID; theirs != mine {
				return "", fmt.Errorf("fleet: the fleet has a TTL of %v and this number of partitions: %d; this node has %v and %d: want the same", theirs.TTL, theirs.Partitions, mine.TTL, mine.Partitions)
			}
			if known == nil {
				err = durablefs.WriteFile(filepath.Join(o.Dir, knownName), 0o644, func(w io.Writer) error { _, err := io.WriteString(w, mine.ID); return err })
			} else if string(known) != mine.ID {
				err = fmt.Errorf("fleet: %s belongs to fleet %s, and the engine to %s", o.Dir, known, mine.ID)
			}
			return mine.ID, err
		}
		if !pause(ctx, rest) {
			return "", fmt.Errorf("fleet: the engine does not answer: %w", errors.Join(context.Cause(ctx), err))
		}
	}
}

// Owner returns the node that has a partition open, as far as is known here, and its Options.Address.
func (n *Node) Owner(partition int) (node, address string, ok bool) {
	var row partRow
	e, ok := get(n.view, fmt.Sprint(partKey, partition), &row)
	if !ok || !row.Open || row.Released || n.view.isDead(row.Session, e.Revision) {
		return "", "", false
	}
	for _, m := range n.view.members() {
		if m.Session == row.Session {
			return m.Node, m.Address, true
		}
	}
	return "", "", false
}

// watch keeps the view up to date.
func (n *Node) watch() {
	for n.life.Err() == nil {
		if err := n.o.Engine.Watch(n.life, n.view.take); n.life.Err() == nil {
			n.log.Warn("fleet: the table is watched again", "error", err)
		}
		pause(n.life, rest)
	}
}

// live goes through the node's sessions.
func (n *Node) live(s *session) {
	for {
		n.during(s)
		if n.life.Err() != nil {
			return
		}
		n.log.Warn("fleet: session ended, and another begins", "error", context.Cause(s.ended))
		next, err := n.begin(n.life)
		for ; err != nil; next, err = n.begin(n.life) {
			if !pause(n.life, retry) {
				return
			}
			n.log.Error("fleet: no session", "error", err)
		}
		s = next
	}
}

// begin begins the node's next session.
func (n *Node) begin(ctx context.Context) (*session, error) {
	s, err := begin(ctx, n.o.Engine, sessionRow{Node: n.o.Node, Address: n.o.Address, Leaving: n.leaving.Load() != 0}, n.o.TTL, n.o.elapsed)
	if err == nil {
		n.session.Store(s)
	}
	return s, err
}

// during is the life of one session.
func (n *Node) during(s *session) {
	ctx, cancel := context.WithCancelCause(n.life)
	defer context.AfterFunc(s.ended, func() { cancel(context.Cause(s.ended)) })()
	var all sync.WaitGroup
	all.Go(func() { s.run(ctx) })
	all.Go(func() { n.judge(ctx, s) })
	for p := range n.o.Partitions {
		all.Go(func() { n.partition(ctx, s, p) })
	}
	<-ctx.Done()
	s.end(context.Cause(ctx))
	all.Wait()
}

// judge ends the sessions of nodes that are not heard of.
func (n *Node) judge(ctx context.Context, s *session) {
	for pause(ctx, n.o.TTL/20) {
		for _, m := range n.view.members() {
			if m.Session == s.name || n.o.elapsed()-s.quietSince(m) <= deadAfter(n.o.TTL) {
				continue
			}
			if _, ok := s.right(); !ok {
				break
			}
			attempt, cancel := context.WithTimeout(ctx, n.o.TTL/3)
			err := s.kill(attempt, m)
			cancel()
			if err == nil {
				n.log.Warn("fleet: a node is not heard of any more", "node", m.Node)
			}
		}
	}
}

// partition claims a partition whenever it is this node's turn, and owns it as long as it can.
func (n *Node) partition(ctx context.Context, s *session, p int) {
	var free time.Duration // since when it is
	for ctx.Err() == nil {
		changed := n.view.wait()
		now := n.o.elapsed()
		revision, isFree := n.freePart(p)
		switch {
		case !isFree:
			free = 0
		case free == 0:
			free = now
		}
		if isFree && n.leaving.Load() == drained && now-free > turn && !n.others() {
			n.log.Warn("fleet: no other node takes partitions: this one does again", "partition", p)
			if err := n.Drain(ctx, true); err != nil {
				n.log.Warn("fleet: the drain goes on", "error", err)
			}
		}
		if isFree && n.mayClaim(s, p, now-free) {
			if err := n.claim(ctx, s, p, revision); err != nil {
				n.log.Warn("fleet: partition given up", "partition", p, "error", err)
			}
			free = 0
		}
		var later <-chan time.Time
		if isFree { // else only a change makes it so
			later = time.After(turn / 4)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-later:
		}
	}
}

// freePart returns the revision of a partition's entry, and whether it has no owner.
func (n *Node) freePart(p int) (revision uint64, free bool) {
	var row partRow
	e, ok := get(n.view, fmt.Sprint(partKey, p), &row)
	if _, known := get(n.view, configKey, &config{}); !known {
		return 0, false // nothing was seen yet
	}
	return e.Revision, !ok || row.Released || n.view.isDead(row.Session, e.Revision)
}

// mayClaim reports whether a partition that has been free for a time is this node's.
func (n *Node) mayClaim(s *session, p int, free time.Duration) bool {
	if _, ok := s.right(); !ok || n.leaving.Load() != 0 {
		return false
	}
	n.mu.Lock()
	at, failed := n.failed[p]
	n.mu.Unlock()
	if failed && n.o.elapsed()-at < retry {
		return false
	}
	return free >= turn*time.Duration(n.rank(p))
}

// rank returns how many nodes have a better right to a partition.
func (n *Node) rank(p int) (better int) {
	mine := weight(n.o.Node, p)
	for _, m := range n.view.members() {
		if w := weight(m.Node, p); m.Node != n.o.Node && !m.Leaving && (w > mine || w == mine && m.Node < n.o.Node) {
			better++
		}
	}
	return better
}

// yielding returns a function that reports whether a partition goes to a node with a better right, which has been
// there for a while. One that came back from there goes again after twice the time: that node may not be able to open it.
func (n *Node) yielding(p int) func() bool {
	since := n.o.elapsed()
	asked := since
	return func() bool {
		now := n.o.elapsed()
		if n.o.Partitions == 1 || now-asked < turn { // the answer costs a little
			return false
		}
		if asked = now; n.rank(p) == 0 {
			since = now
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if now-since < settle<<min(n.yields[p], 6) {
			return false
		}
		n.yields[p]++
		n.log.Info("fleet: partition goes to a node with a better right", "partition", p)
		return true
	}
}

// weight is a node's right to a partition: the highest has it. So each node comes to about as many, and a
// node that joins or leaves moves its own only.
func weight(node string, p int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s/%d", node, p)
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}

// claim makes a partition this node's and owns it until that ends.
func (n *Node) claim(ctx context.Context, s *session, p int, revision uint64) error {
	row := partRow{Session: s.name, Claim: rand.Text()}
	epoch, err := n.putPart(ctx, p, row, revision)
	if err != nil {
		if errors.Is(err, ErrConflict) {
			return nil // another was faster
		}
		return err
	}
	n.log.Info("fleet: partition claimed", "partition", p)
	n.claimed(p, nil)
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.owned, p)
	}()
	err = n.own(ctx, s, p, epoch, row)
	if err != nil {
		n.mu.Lock()
		n.failed[p] = n.o.elapsed()
		n.mu.Unlock()
	}
	row.Released = true
	for s.ended.Err() == nil && n.free(s, p, row) != nil { // while the session lives, no other node can
		pause(s.ended, rest)
	}
	return err
}

// claimed notes a partition that is claimed here, with its log once that is known.
func (n *Node) claimed(p int, l *logged) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.owned[p] = l
}

// free stores that a partition has no owner, if it is still this claim's.
func (n *Node) free(s *session, p int, row partRow) error {
	key := fmt.Sprint(partKey, p)
	e, err := n.o.Engine.Get(s.ended, key)
	var now partRow
	if err == nil {
		err = json.Unmarshal(e.Value, &now)
	}
	if err != nil || now.Claim != row.Claim || now.Released {
		return err
	}
	value, err := json.Marshal(row)
	if err == nil {
		_, err = n.o.Engine.Put(s.ended, key, value, e.Revision)
	}
	return err
}

// putPart stores a partition's entry. If the outcome was unknown at first, it finds out.
func (n *Node) putPart(ctx context.Context, p int, row partRow, revision uint64) (uint64, error) {
	key := fmt.Sprint(partKey, p)
	value, err := json.Marshal(row)
	if err != nil {
		return 0, err
	}
	for unknown := false; ; unknown = true {
		now, err := n.o.Engine.Put(ctx, key, value, revision)
		if errors.Is(err, ErrConflict) && unknown {
			var e Entry
			if e, err = n.o.Engine.Get(ctx, key); err == nil && !slices.Equal(e.Value, value) {
				err = ErrConflict
			}
			now = e.Revision
		}
		if err == nil || errors.Is(err, ErrConflict) {
			return now, err
		}
		if !pause(ctx, rest) {
			return 0, errors.Join(context.Cause(ctx), err)
		}
	}
}

// others reports whether any other node that is alive takes partitions.
func (n *Node) others() bool {
	return slices.ContainsFunc(n.view.members(), func(m member) bool { return m.Node != n.o.Node && !m.Leaving })
}

// Drain begins to hand over all partitions. The node takes none from then on, until Drain is called with back,
// the process starts again, or no other node is left that takes them.
func (n *Node) Drain(ctx context.Context, back bool) error {
	if !back && !n.others() {
		return errors.New("fleet: drain: no other node that is alive takes partitions")
	}
	s := n.session.Load()
	if err := s.write(ctx, func(r *sessionRow) { r.Leaving = !back }); err != nil {
		return fmt.Errorf("fleet: drain: %w", err)
	}
	if back {
		n.leaving.CompareAndSwap(drained, 0)
	} else {
		n.leaving.CompareAndSwap(0, drained)
	}
	n.log.Info("fleet: drain", "back", back)
	return nil
}

// Forget ends what is known of a node that was removed and is not alive. If it joins again, it is known again.
func (n *Node) Forget(ctx context.Context, node string) error {
	e, err := n.o.Engine.Get(ctx, nodeKey+node)
	if err != nil || e.Revision == 0 {
		return err
	}
	var row sessionRow
	if err = json.Unmarshal(e.Value, &row); err == nil && !row.Dead {
		err = errors.New("it is alive")
	}
	row.Gone = true
	value, bad := json.Marshal(row)
	if err = errors.Join(err, bad); err == nil {
		_, err = n.o.Engine.Put(ctx, nodeKey+node, value, e.Revision)
	}
	if err != nil {
		return fmt.Errorf("fleet: forget node %s: %w", node, err)
	}
	return nil
}

// Leave hands over all partitions and ends the session, so that others need not wait for it. The node
// is of no use after that. If it cannot do so before ctx ends, the others go on as after a crash: what was acknowledged
// is there all the same.
func (n *Node) Leave(ctx context.Context) error {
	n.leaving.Store(leaves)
	s := n.session.Load()
	err := s.write(ctx, func(r *sessionRow) { r.Leaving = true })
	for { // until nothing is claimed here
		n.mu.Lock()
		owned := len(n.owned)
		n.mu.Unlock()
		if owned == 0 || s.ended.Err() != nil {
			break
		}
		if !pause(ctx, 10*time.Millisecond) {
			err = errors.Join(err, context.Cause(ctx))
			break
		}
	}
	if err == nil {
		err = s.write(ctx, func(r *sessionRow) { r.Dead = true })
	}
	if errors.Is(err, errSessionDead) {
		err = nil
	}
	why := errors.New("fleet: the node has left")
	if err != nil {
		err = fmt.Errorf("fleet: leave: not handed over in time: %w", err)
		why = errors.New("fleet: the node leaves without handing over")
	}
	n.stop(why)
	n.running.Wait()
	return err
}

// Close ends the node as if its process had died, but closes what it has open.
func (n *Node) Close() {
	n.stop(errors.New("fleet: closed"))
	n.running.Wait()
}
