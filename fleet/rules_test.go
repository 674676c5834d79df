// This file tests rules of the fleet one by one, where a random schedule would seldom show their breach.

package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/storage"
)

// losing is an engine that loses every answer to an Append, though not its effect.
type losing struct{ *fake }

func (e losing) Append(ctx context.Context, p int, last uint64, record []byte) (uint64, error) {
	if n, err := e.fake.Append(ctx, p, last, record); err != nil {
		return n, err
	}
	return 0, errTimeout
}

// interrupted is an engine that loses an Append, and another comes first.
type interrupted struct {
	*fake
	by func()
}

func (e interrupted) Append(ctx context.Context, p int, last uint64, record []byte) (uint64, error) {
	n, _, err := e.Last(ctx, p)
	if err == nil && n == last {
		e.by()
		return 0, errTimeout
	}
	return e.fake.Append(ctx, p, last, record)
}

// A record whose answer was lost is recognized, and not taken for another owner's.
func TestALostAnswerIsNoFence(t *testing.T) {
	e := losing{&fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}}
	m, err := openMemory(t.TempDir(), bare(t, e, "a").o.Store)
	require.NoError(t, err)
	l := &logged{store: m, engine: e, epoch: 1, ctx: t.Context(), turn: newSlot(), failed: func(err error) { t.Error(err) }}
	require.NoError(t, l.fence())
	for id := range uint64(3) {
		require.NoError(t, l.Commit(&storage.Batch{ID: id + 1}))
	}
	require.Len(t, e.logs[0], 4)

	other := &logged{store: m, engine: e.fake, epoch: 2, ctx: t.Context(), turn: newSlot()}
	l.engine = interrupted{e.fake, func() { require.NoError(t, other.fence()) }}
	ended := make(chan error, 1)
	l.failed = func(err error) { ended <- err }
	err = l.Commit(&storage.Batch{ID: 4})
	require.ErrorIs(t, err, storage.ErrReopen)
	require.ErrorIs(t, err, storage.ErrMoved)
	require.ErrorIs(t, <-ended, errFenced)
	require.ErrorIs(t, l.Commit(&storage.Batch{ID: 5}), storage.ErrReopen, "and takes no more")
}

// unnoticed is an engine whose first Put has an effect and no answer, and then another node's Put comes.
type unnoticed struct {
	*fake
	then func()
}

func (e *unnoticed) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	n, err := e.fake.Put(ctx, key, value, revision)
	if then := e.then; err == nil && then != nil {
		e.then = nil
		then()
		return 0, errTimeout
	}
	return n, err
}

// A session that began unnoticed, and that another node ended before the answer came, is followed by the next.
func TestASessionThatEndedUnnoticedIsFollowedByTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
		e := &unnoticed{fake: f}
		var first sessionRow
		e.then = func() {
			seen := f.table[nodeKey+"a"]
			require.NoError(t, json.Unmarshal(seen.Value, &first))
			require.NoError(t, (&session{engine: f}).kill(t.Context(), member{sessionRow: first, revision: seen.Revision}))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s, err := begin(ctx, e, sessionRow{Node: "a"}, 10*time.Second, sinceBoot)
		require.NoError(t, err)
		require.NotEqual(t, first.Session, s.name)
		_, ok := s.right()
		require.True(t, ok)
	})
}

// A session is ended as it was seen, or not at all: it may have been renewed since.
func TestASessionThatWasRenewedIsNotEnded(t *testing.T) {
	e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
	s, err := begin(t.Context(), e, sessionRow{Node: "a"}, time.Hour, sinceBoot)
	require.NoError(t, err)
	before := member{sessionRow: s.row, revision: s.revision}
	require.NoError(t, s.write(t.Context(), func(*sessionRow) {}))
	other, err := begin(t.Context(), e, sessionRow{Node: "b"}, time.Hour, sinceBoot)
	require.NoError(t, err)
	require.ErrorIs(t, other.kill(t.Context(), before), ErrConflict)
	require.NoError(t, s.write(t.Context(), func(*sessionRow) {}), "it goes on")
	require.NoError(t, other.kill(t.Context(), member{sessionRow: s.row, revision: s.revision}))
	require.ErrorIs(t, s.write(t.Context(), func(*sessionRow) {}), errSessionDead)
}

// While no node reaches the engine, none takes the others for dead: the first one back would end the
// sessions of all.
func TestTroubleOfAllEndsNoSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newShared()
		w := &web{t: t, start: time.Now(), busy: map[int]bool{}, free: map[int]time.Time{}, acked: map[int]uint64{}}
		quick := func() time.Duration { return 0 }
		var nodes []*Node
		root := t.TempDir()
		for i := range 3 {
			e := &fake{shared: all, rand: rand.New(rand.NewPCG(1, uint64(i)))}
			n, err := Join(t.Context(), testOptions(t, w, fmt.Sprint("n", i), filepath.Join(root, fmt.Sprint(i)), e, 1, quick, quick))
			require.NoError(t, err)
			nodes = append(nodes, n)
			time.Sleep(700 * time.Millisecond) // so that one is the first
		}
		time.Sleep(20 * time.Second)
		before := sessions(nodes)
		all.set(func() { all.down = true })
		time.Sleep(40 * time.Second)
		all.set(func() { all.down = false })
		time.Sleep(30 * time.Second)
		require.Equal(t, before, sessions(nodes))
		for _, n := range nodes {
			n.Close()
		}
		time.Sleep(time.Minute)
	})
}

func sessions(nodes []*Node) (names []string) {
	for _, n := range nodes {
		names = append(names, n.session.Load().name)
	}
	return names
}

// An owner that ends in order while it waits for the leases of a dead one does not hide them from the next.
func TestAReleaseHidesNoHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newShared()
		w := &web{t: t, start: time.Now(), busy: map[int]bool{}, free: map[int]time.Time{}, acked: map[int]uint64{}}
		root := t.TempDir()
		join := func(name string, long time.Duration) *Node {
			e := &fake{shared: all, rand: rand.New(rand.NewPCG(1, 2))}
			n, err := Join(t.Context(), testOptions(t, w, name, filepath.Join(root, name), e, 1, func() time.Duration { return 0 }, func() time.Duration { return long }))
			require.NoError(t, err)
			return n
		}
		first := join("a", testLease) // its contacts last as long as its leases
		time.Sleep(5 * time.Second)
		first.Close() // like a process that dies, in the middle of a contact
		second := join("b", 0)
		for name := ""; name != "b"; name, _, _ = second.Owner(0) {
			time.Sleep(100 * time.Millisecond)
		}
		require.NoError(t, second.Leave(t.Context()))
		third := join("c", 0)
		time.Sleep(time.Minute)
		w.mu.Lock()
		require.Greater(t, w.acked[0], uint64(10))
		w.mu.Unlock()
		third.Close()
		time.Sleep(time.Minute)
	})
}

// The log is cut when the owner's copy is at every other node that is alive, and one besides the owner at
// least; who joins later fetches the copy.
func TestTheLogIsCutBehindCopies(t *testing.T) {
	e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
	w := &web{t: t, start: time.Now(), busy: map[int]bool{}, free: map[int]time.Time{}, acked: map[int]uint64{}}
	root := t.TempDir()
	join := func(name string) *Node {
		var h atomic.Pointer[Node]
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.Load().Handler().ServeHTTP(w, r) }))
		o := testOptions(t, w, name, filepath.Join(root, name), e, 1, func() time.Duration { return 0 }, func() time.Duration { return 0 })
		o.CopyAfter, o.Address, o.Client = 1, srv.URL, srv.Client()
		n, err := Join(t.Context(), o)
		require.NoError(t, err)
		h.Store(n)
		t.Cleanup(func() { n.Close(); srv.Close() })
		return n
	}
	first := func() uint64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.logs[0]) == 0 {
			return e.ends[0] + 1
		}
		return e.logs[0][0].number
	}
	a := join("a")
	require.Eventually(t, func() bool { return len(a.copies(0)) > 0 }, 20*time.Second, 10*time.Millisecond)
	time.Sleep(2 * lookAtLog)
	made := a.copies(0)
	require.LessOrEqual(t, first(), made[len(made)-1].Last, "no other node has the copy")
	b := join("b")
	require.Eventually(t, func() bool { return len(b.copies(0)) > 0 }, 20*time.Second, 10*time.Millisecond)
	before := a.copies(0)[0]
	require.Eventually(t, func() bool { return first() > before.Last }, 20*time.Second, 10*time.Millisecond)
	require.LessOrEqual(t, len(a.copies(0)), keptCopies)

	c := join("c") // it has neither a copy nor the log before
	require.NoError(t, a.Leave(t.Context()))
	require.NoError(t, b.Leave(t.Context()))
	require.Eventually(t, func() bool { name, _, ok := c.Owner(0); return ok && name == "c" }, 20*time.Second, 10*time.Millisecond)
}

// An owner that knows the leases of its predecessor hands out at once, and does not hide from its successor how
// long they last.
func TestAHandoverKeepsTheBound(t *testing.T) {
	e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
	const key = boundKey + "0"
	next := func(name string) *bound {
		n := bare(t, e, name)
		s, err := begin(t.Context(), e, sessionRow{Node: name}, time.Hour, sinceBoot)
		require.NoError(t, err)
		return &bound{n: n, s: s, writing: newSlot(), key: key, epoch: uint64(name[0])}
	}
	left := func(name string) time.Duration {
		d, err := next(name).inherit(t.Context())
		require.NoError(t, err)
		return d
	}
	first := next("a")
	require.NoError(t, first.permit(t.Context(), time.Now().Add(time.Minute)))
	second := next("b")
	_, err := second.inherit(t.Context())
	require.NoError(t, err)
	require.NoError(t, second.permit(t.Context(), time.Now().Add(time.Second)))
	require.Greater(t, left("c"), 50*time.Second)
	require.NoError(t, second.permit(t.Context(), time.Now().Add(2*time.Minute)))
	require.Greater(t, left("d"), 110*time.Second)
	for range 2 { // one that stood still, and does not know yet that it was replaced; several clients may have waited
		require.ErrorIs(t, first.permit(t.Context(), time.Now().Add(70*time.Second)), errFenced)
	}
	require.Greater(t, left("e"), 110*time.Second, "what the latest owner has stated stays")
}

// An owner hands out by what it has stated itself. What its predecessor stated, it may have seen later than the next
// owner did, which waits no longer than it must.
func TestABoundThatWasSeenLatePermitsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
		began := time.Now()
		next := func(name string) *bound {
			n := bare(t, e, name)
			n.o.elapsed = func() time.Duration { return time.Since(began) }
			n.view = newView(n.o.elapsed)
			s, err := begin(t.Context(), e, sessionRow{Node: name}, time.Hour, n.o.elapsed)
			require.NoError(t, err)
			return &bound{n: n, s: s, writing: newSlot(), key: boundKey + "0", epoch: uint64(name[0])}
		}
		first, third := next("a"), next("c")
		require.NoError(t, first.permit(t.Context(), time.Now().Add(25*time.Second)))
		third.n.view.take([]Entry{e.table[third.key]})
		time.Sleep(20 * time.Second)
		second := next("b") // it was cut off, and sees only now what the first has stated
		_, err := second.inherit(t.Context())
		require.NoError(t, err)
		end := time.Now().Add(25 * time.Second)
		require.NoError(t, second.permit(t.Context(), end))
		time.Sleep(12 * time.Second) // the second dies
		hold, err := third.inherit(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, hold, time.Until(end))
	})
}

// A partition whose copy is lost, and whose log before it is gone, does not begin empty.
func TestNoPartitionBeginsEmpty(t *testing.T) {
	e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
	n := bare(t, e, "a")
	n.o.open = openMemory
	l := func(epoch uint64) *logged {
		return &logged{engine: e, epoch: epoch, ctx: t.Context(), turn: newSlot(), failed: func(error) {}}
	}
	first := l(1)
	require.NoError(t, first.fence())
	_, err := n.restore(t.Context(), first)
	require.NoError(t, err)
	require.NoError(t, first.Commit(&storage.Batch{ID: 1}))
	require.NoError(t, n.copy(t.Context(), first))
	require.NoError(t, e.Purge(t.Context(), 0, e.ends[0]))
	second := l(2)
	require.NoError(t, second.fence())
	_, err = n.restore(t.Context(), second)
	require.NoError(t, err, "the copy is here")

	third := l(3)
	require.NoError(t, third.fence())
	_, err = bare(t, e, "b").restore(t.Context(), third)
	require.ErrorContains(t, err, "goes to change 0, and the newest copy")
}

// reported is an engine that calls back before each Append.
type reported struct {
	*fake
	before func()
}

func (e reported) Append(ctx context.Context, p int, last uint64, record []byte) (uint64, error) {
	e.before()
	return e.fake.Append(ctx, p, last, record)
}

// A copy that is made while a change of several records is being logged leaves all of them in the log.
func TestTheLogIsCutBetweenChanges(t *testing.T) {
	e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
	m, err := openMemory(t.TempDir(), bare(t, e, "a").o.Store)
	require.NoError(t, err)
	l := &logged{store: m, epoch: 1, ctx: t.Context(), turn: newSlot()}
	var ends []uint64
	l.engine = reported{e, func() {
		_, last, _ := l.grown()
		ends = append(ends, last)
	}}
	require.NoError(t, l.fence())
	require.NoError(t, l.log(kindBatch, make([]byte, 2*pieceBytes+1)))
	_, last, change := l.grown()
	require.Equal(t, []uint64{0, e.logs[0][0].number, e.logs[0][0].number, e.logs[0][0].number}, ends)
	require.Equal(t, e.ends[0], last)
	require.EqualValues(t, 1, change)
}

// silent is a peer that begins an answer and does not go on.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: stuck{r.Context()}}, nil
}

type stuck struct{ ctx context.Context }

func (s stuck) Read([]byte) (int, error) { <-s.ctx.Done(); return 0, s.ctx.Err() }
func (s stuck) Close() error             { return nil }

// A machine that stands still while it sends a copy holds the others up for a moment only.
func TestAPeerThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := bare(t, &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}, "a")
		n.o.Client = &http.Client{Transport: silent{}}
		began := time.Now()
		require.Error(t, n.request(t.Context(), "http://b.example", "c", func(r io.Reader) error { _, err := io.ReadAll(r); return err }))
		require.Equal(t, callTime, time.Since(began))
	})
}

// unable is a store whose first copies fail.
type unable struct {
	*memory
	failures int
}

func (u *unable) CopyTo(ctx context.Context, dir string) error {
	if u.failures--; u.failures >= 0 {
		return errors.New("no space")
	}
	return u.memory.CopyTo(ctx, dir)
}

// A copy that failed is due until it is made, and an owner that was fenced in the meantime does not state an
// older one.
func TestACopyThatFailedIsStillDue(t *testing.T) {
	e := &fake{shared: newShared(), rand: rand.New(rand.NewPCG(1, 2))}
	n := bare(t, e, "a")
	l := &logged{store: &unable{&memory{Values: map[string][]byte{}}, 1}, engine: e, epoch: 1, ctx: t.Context(), turn: newSlot()}
	require.NoError(t, l.fence())
	require.NoError(t, l.log(kindBatch, make([]byte, 100)))
	require.Error(t, n.copy(t.Context(), l))
	size, _, _ := l.grown()
	require.EqualValues(t, 100, size)
	require.NoError(t, n.copy(t.Context(), l))
	size, _, _ = l.grown()
	require.Zero(t, size)

	require.NoError(t, n.state(t.Context(), copyKey+"0", copyRow{Name: "later", Change: 9}))
	require.NoError(t, n.state(t.Context(), copyKey+"0", copyRow{Name: "earlier", Change: 8}))
	now, err := e.Get(t.Context(), copyKey+"0")
	require.NoError(t, err)
	require.Contains(t, string(now.Value), "later")
}
