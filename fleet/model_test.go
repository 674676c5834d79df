// This file tests nodes against an engine that fails in every way, with the clock of synctest.

package fleet

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
)

var (
	schedules = flag.Int("frontier.schedules", 300, "how many random schedules TestSchedules runs")
	schedule  = flag.Uint64("frontier.schedule", 0, "the first of them")
)

// memory is a store that keeps rows in memory, and counts batches.
type memory struct {
	storage.Spill
	mu     sync.Mutex
	Number uint64
	Values map[string][]byte
}

func openMemory(dir string, _ spill.Options) (store, error) {
	m := &memory{Values: map[string][]byte{}}
	b, err := os.ReadFile(filepath.Join(dir, "rows"))
	if err == nil {
		return m, json.Unmarshal(b, m)
	}
	return m, nil
}

func (m *memory) Recover(_ context.Context, r storage.Recovery) error {
	if m.Number == 0 {
		return nil
	}
	return r.Batch(&storage.Batch{ID: m.Number})
}

func (m *memory) Commit(b *storage.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if b.ID != m.Number+1 {
		return fmt.Errorf("batch %d after %d", b.ID, m.Number)
	}
	m.Number = b.ID
	for _, r := range b.Rows {
		m.Values[r.Key] = append([]byte{}, r.Value...)
	}
	return nil
}

func (m *memory) Row(key string) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.Values[key]
	return v, ok, nil
}

func (m *memory) CopyTo(_ context.Context, dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, err := json.Marshal(m)
	if err == nil {
		err = os.MkdirAll(dir, 0o777)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "rows"), b, 0o666)
	}
	return err
}

func (m *memory) Release() error { return nil }
func (m *memory) Close() error   { return nil }

const (
	testDelay = time.Second
	testLease = 25 * time.Second // longer than a takeover takes
)

// web is the only judge: one host in each partition.
type web struct {
	t        *testing.T
	start    time.Time
	mu       sync.Mutex
	busy     map[int]bool      // a contact is under way
	free     map[int]time.Time // when the host may be contacted again
	acked    map[int]uint64    // the last value that a commit acknowledged
	contacts int
	opened   int
}

// logf says what happens, with -v.
func (w *web) logf(format string, args ...any) {
	if testing.Verbose() {
		w.t.Logf(format, args...)
	}
}

func (w *web) elapsed() time.Duration { return time.Since(w.start) + time.Hour }

// begin is the start of a contact.
func (w *web) begin(p int, node string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.contacts++
	now := time.Now()
	w.logf("%v %s begins %d", time.Since(w.start), node, p)
	assert.False(w.t, w.busy[p], "%s contacts host %d during another contact", node, p)
	assert.False(w.t, now.Before(w.free[p]), "%s contacts host %d %v too early", node, p, w.free[p].Sub(now))
	w.busy[p] = true
}

// values returns what was acknowledged last in the partitions.
func (w *web) values() [2]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return [2]uint64{w.acked[0], w.acked[1]}
}

func (w *web) end(p int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logf("%v ends %d", time.Since(w.start), p)
	w.busy[p], w.free[p] = false, time.Now().Add(testDelay)
}

// owner is a frontier of one host: each second it leases its next URL to a client somewhere else, and
// commits what came of it.
type owner struct {
	w     *web
	node  string
	slow  func() time.Duration // how long the process stands still between two steps
	long  func() time.Duration // how long a contact takes
	o     Opening
	ctx   context.Context
	stop  context.CancelFunc
	ended chan struct{}

	mu    sync.Mutex
	until time.Time // deadline of the lease that is out
}

// open is Options.Open.
func (w *web) open(node string, slow, long func() time.Duration) func(context.Context, Opening) (Opened, error) {
	return func(_ context.Context, o Opening) (Opened, error) {
		x := &owner{w: w, node: node, slow: slow, long: long, o: o, ended: make(chan struct{})}
		x.ctx, x.stop = context.WithCancel(context.Background())
		var at end
		if err := o.Spill.Recover(x.ctx, &at); err != nil {
			return nil, err
		}
		value, _, err := o.Spill.Row("value")
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		w.opened++
		n := uint64(0)
		if len(value) > 0 {
			n = binary.BigEndian.Uint64(value)
		}
		acked := w.acked[o.Partition]
		w.mu.Unlock()
		assert.GreaterOrEqual(w.t, n, acked, "%s opened partition %d without what was acknowledged", node, o.Partition)
		from := o.ContactedAt.Add(testDelay)
		if len(o.Leases) > 0 {
			x.until = time.UnixMilli(int64(binary.BigEndian.Uint64(o.Leases))) // passed on by Release, if nothing is handed out
			if t := x.until.Add(testDelay); t.After(from) {
				from = t
			}
		}
		if err := o.Spill.Commit(&storage.Batch{ID: at.last + 1, Rows: []storage.Row{{Key: "opened", Value: []byte(node)}}}); err != nil {
			return nil, err
		}
		w.logf("%v %s opened %d, from %v, leases %v", time.Since(w.start), node, o.Partition, time.Until(from), len(o.Leases) > 0)
		go x.run(n, at.last+1, from)
		return x, nil
	}
}

func (x *owner) run(n, id uint64, from time.Time) {
	defer close(x.ended)
	pause(x.ctx, time.Until(from))
	for x.ctx.Err() == nil {
		until := time.Now().Add(testLease)
		if err := x.o.Permit(x.ctx, until); err != nil {
			pause(x.ctx, 100*time.Millisecond)
			continue
		}
		x.mu.Lock()
		if x.ctx.Err() != nil {
			x.mu.Unlock()
			return
		}
		x.until = until
		x.mu.Unlock()
		time.Sleep(x.slow()) // the process stands still, and then sends the lease
		done := make(chan bool)
		go func() { // the client, which knows nothing of owners
			if !time.Now().Before(until) {
				done <- false
				return
			}
			x.w.begin(x.o.Partition, x.node)
			took := min(x.long()+time.Millisecond, time.Until(until))
			time.Sleep(took)
			x.w.end(x.o.Partition)
			done <- true
		}()
		if !<-done {
			continue
		}
		n++
		id++
		value := binary.BigEndian.AppendUint64(nil, n)
		if err := x.o.Spill.Commit(&storage.Batch{ID: id, Rows: []storage.Row{{Key: "value", Value: value}}}); err != nil {
			return
		}
		x.w.mu.Lock()
		x.w.acked[x.o.Partition] = max(x.w.acked[x.o.Partition], n)
		x.w.mu.Unlock()
		pause(x.ctx, testDelay)
	}
}

func (x *owner) Close() error {
	x.stop()
	return nil
}

func (x *owner) Release(context.Context) ([]byte, error) {
	x.stop()
	x.mu.Lock()
	defer x.mu.Unlock()
	return binary.BigEndian.AppendUint64(nil, uint64(x.until.UnixMilli()+1)), nil
}

func testOptions(t *testing.T, w *web, node, dir string, e *fake, partitions int, slow, long func() time.Duration) Options {
	return Options{
		Node: node, Dir: dir, Engine: e, Address: "none://asks.nothing", Partitions: partitions, TTL: 10 * time.Second, CopyAfter: 1 << 30,
		Logger: slog.New(slog.NewTextHandler(writer{t, node, w}, &slog.HandlerOptions{Level: level()})),
		Open:   w.open(node, slow, long), open: openMemory, elapsed: w.elapsed,
	}
}

// Whatever the engine and the processes do, no host is contacted too early, nothing that was acknowledged
// is lost, and once all is well again every partition is at work.
func TestSchedules(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	var next atomic.Int64
	var all sync.WaitGroup
	for range 2 * runtime.GOMAXPROCS(0) { // some wait for the disk
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(*schedules) && !t.Failed(); i = next.Add(1) - 1 {
				seed := *schedule + uint64(i)
				t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { runSchedule(t, seed) }) })
			}
		})
	}
	all.Wait()
}

func runSchedule(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	const names, partitions = 3, 2
	all := newShared()
	w := &web{t: t, start: time.Now(), busy: map[int]bool{}, free: map[int]time.Time{}, acked: map[int]uint64{}}
	type process struct {
		e    *fake
		n    *Node
		dir  string
		rand *rand.Rand
		mu   sync.Mutex
	}
	var nodes [names]*process
	root := t.TempDir()
	start := func(i int) {
		p := &process{dir: filepath.Join(root, fmt.Sprint(i)), rand: rand.New(rand.NewPCG(seed, uint64(r.Uint32())))}
		p.e = &fake{shared: all, rand: rand.New(rand.NewPCG(seed, uint64(r.Uint32()))), slow: time.Duration(r.Int64N(int64(300 * time.Millisecond))), late: time.Duration(r.Int64N(int64(2 * time.Second)))}
		if r.IntN(3) == 0 {
			p.e.lost = r.Float64() / 20
		}
		slow := func() time.Duration {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.rand.IntN(20) == 0 {
				return time.Duration(p.rand.Int64N(int64(20 * time.Second)))
			}
			return time.Duration(p.rand.Int64N(int64(time.Second)))
		}
		long := func() time.Duration {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.rand.IntN(3) == 0 {
				return time.Duration(p.rand.Int64N(int64(testLease)))
			}
			return time.Duration(p.rand.Int64N(int64(time.Second)))
		}
		nodes[i] = p
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		n, err := Join(ctx, testOptions(t, w, string(rune('a'+i)), p.dir, p.e, partitions, slow, long))
		require.NoError(t, err)
		p.n = n
	}
	for i := range nodes {
		start(i)
	}
	var back sync.WaitGroup
	for range 12 {
		time.Sleep(time.Duration(r.Int64N(int64(30 * time.Second))))
		i := r.IntN(names)
		p := nodes[i]
		switch r.IntN(5) {
		case 0: // dies and comes back
			p.n.Close()
			time.Sleep(time.Duration(r.Int64N(int64(20 * time.Second))))
			start(i)
		case 1: // leaves in order and comes back
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.Int64N(int64(20*time.Second))))
			_ = p.n.Leave(ctx)
			cancel()
			start(i)
		case 2, 3: // is cut off
			all.set(func() { p.e.cut = true })
			d := time.Duration(r.Int64N(int64(40 * time.Second)))
			back.Go(func() { time.Sleep(d); all.set(func() { p.e.cut = false }) })
		case 4: // no quorum
			all.set(func() { all.down = true })
			d := time.Duration(r.Int64N(int64(40 * time.Second)))
			back.Go(func() { time.Sleep(d); all.set(func() { all.down = false }) })
		}
	}
	back.Wait()
	for _, p := range nodes {
		all.set(func() { p.e.lost = 0 })
	}
	settle := 30 * time.Second
	if r.IntN(4) == 0 {
		settle = time.Duration(r.Int64N(int64(4 * time.Minute)))
	}
	time.Sleep(settle)
	before, since := w.values(), time.Now()
	for {
		now := w.values()
		if now[0] > before[0] && now[1] > before[1] && now[0]+now[1] > 10 {
			break
		}
		require.Less(t, time.Since(since), 4*time.Minute, "a partition stands still: %v, then %v", before, now)
		time.Sleep(time.Second)
	}
	for _, p := range nodes {
		p.n.Close()
	}
	time.Sleep(2 * time.Minute)
}

type writer struct {
	t    *testing.T
	node string
	w    *web
}

func (x writer) Write(b []byte) (int, error) {
	_, line, _ := strings.Cut(string(b), "msg=")
	x.w.logf("%v %s %s", time.Since(x.w.start), x.node, strings.TrimSpace(line))
	return len(b), nil
}

// level is that of all messages with -v, and of none without.
func level() slog.Level {
	if testing.Verbose() {
		return slog.LevelDebug
	}
	return slog.LevelError + 1
}
