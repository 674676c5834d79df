// This file cuts the power of a machine whose file system brings removals to the medium within
// seconds, and what was mapped or written much later: what a removal rests on must be there first.
//
// One goroutine of the process writes, so its calls have an order. What a cut leaves must be the
// state after one of them.

package durability

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/hook"
	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
)

var (
	momentChild = flag.String("frontier.moment-child", "", "be the process with one writer, with the store in this folder")
	momentCuts  = flag.Int("frontier.moment-cuts", 0, "how often TestPowerCutLeavesOneMoment cuts the power of each kind of store, seconds apart; 0: it is skipped")
	momentOnly  = flag.String("frontier.moment-only", "", "the kinds of TestPowerCutLeavesOneMoment, separated by commas; empty: all")
	momentKeep  = flag.String("frontier.moment-keep", "", "folder for the stores that it finds broken")
)

// momentURL is URL n.
func momentURL(n int) frontier.Entry {
	meta := make([]byte, 300+n%300)
	rnd := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range meta {
		meta[i] = byte(rnd.Uint32())
	}
	e := frontier.Entry{URL: fmt.Sprintf("http://h%d.example/%d", n%499, n), Meta: meta, Depth: n % 4}
	if n%17 == 0 {
		e.NotBefore = time.Now().Add(100 * time.Hour)
	}
	return e
}

func momentNumber(url string) int {
	n, err := strconv.Atoi(url[strings.LastIndexByte(url, '/')+1:])
	if err != nil {
		panic(err)
	}
	return n
}

// written is a call of the writer: it adds URLs, of a page that is done or to be visited again, or of
// none.
type written struct {
	Added int // so many, with the next numbers
	Done  int // this one; 0: none
	Again int // this one comes again after days; 0: none
}

// moment is what a store holds: which URLs it knows, and for each that waits how often it was
// visited.
type moment struct {
	known  int
	visits map[int]int
}

func (m *moment) apply(e written) {
	for range e.Added {
		m.known++
		m.visits[m.known] = 0
	}
	delete(m.visits, e.Done)
	if e.Again > 0 {
		m.visits[e.Again]++
	}
}

// TestMomentChild says on its standard output, one event after the other:
//
//	p ADDED DONE AGAIN   begins
//	k                    has returned
//	m N                  the first N of this process are on the medium
//	z                    everything is closed
func TestMomentChild(t *testing.T) {
	if *momentChild == "" {
		t.Skip("only a part of a test that cuts its power")
	}
	w := &momentWriter{next: *crashFirst}
	db, err := openCrashStore(*momentChild, *crashStore, slog.New(&syncsHeard{w: w}))
	require.NoError(t, err)
	fo := crashOptions(db, nil)
	fo.Delay = frontier.FixedDelay(time.Millisecond)
	w.f, err = frontier.Open(context.Background(), fo)
	require.NoError(t, err)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	rounds := make(chan struct{})
	go func() {
		defer close(rounds)
		for !w.ended.Load() {
			_ = hook.Of(w.f).MoveNow(rand.IntN(2) == 0)
			time.Sleep(time.Duration(50+rand.IntN(400)) * time.Millisecond)
		}
	}()
	for len(end) == 0 {
		require.NoError(t, w.step())
		time.Sleep(time.Millisecond)
	}
	w.ended.Store(true)
	<-rounds
	require.NoError(t, w.f.Close())
	require.NoError(t, db.Close())
	say("z")
}

// momentWriter is the only writer of its process.
type momentWriter struct {
	f     *frontier.Frontier
	next  int          // number of the next URL
	acked atomic.Int64 // events that have returned
	ended atomic.Bool
}

// step makes the next event.
func (w *momentWriter) step() error {
	l, _, err := w.f.TryNext()
	if err != nil && !errors.Is(err, frontier.ErrNotDue) && !errors.Is(err, frontier.ErrExhausted) {
		return err
	}
	var e written
	var add []frontier.Entry
	if e.Added = rand.IntN(3); err != nil {
		e.Added = 1 + rand.IntN(20)
	}
	for i := range e.Added {
		add = append(add, momentURL(w.next+i))
	}
	w.next += e.Added
	o := frontier.Outcome{Add: add}
	if err == nil {
		if n := momentNumber(l.Entry.URL); n%7 == 0 && l.History.Visits == 0 {
			e.Again, o.Next = n, time.Now().Add(100*time.Hour)
		} else {
			e.Done = n
		}
	}
	say("p %d %d %d", e.Added, e.Done, e.Again)
	if err == nil {
		err = w.f.Done(l, o)
	} else {
		_, err = w.f.Add(context.Background(), add...)
	}
	if err == nil {
		w.acked.Add(1)
		say("k")
	}
	return err
}

// syncsHeard is a log handler that knows what a sync has brought to the medium.
type syncsHeard struct {
	w     *momentWriter
	begun int64 // events that had returned when the sync began
}

func (h *syncsHeard) Enabled(context.Context, slog.Level) bool { return true }
func (h *syncsHeard) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h *syncsHeard) WithGroup(string) slog.Handler            { return h }
func (h *syncsHeard) Handle(_ context.Context, r slog.Record) error {
	switch r.Message {
	case "kv: a sync begins":
		h.begun = h.w.acked.Load()
	case "kv: a sync has ended":
		say("m %d", h.begun)
	}
	if r.Level >= slog.LevelWarn {
		fmt.Fprintln(os.Stderr, "the process logs:", r.Message)
	}
	return nil
}

// history is what the process said.
type history struct {
	Events []written // begun
	Acked  int       // that have returned
	Medium int       // that are on the medium
	Life   int       // of earlier lives, which ended well
}

func (h *history) hear(t testing.TB, line string) {
	t.Helper()
	var e written
	var n int
	switch fields := strings.Fields(line); fields[0] {
	case "p":
		_, err := fmt.Sscanf(line, "p %d %d %d", &e.Added, &e.Done, &e.Again)
		require.NoError(t, err)
		h.Events = append(h.Events, e)
	case "k":
		h.Acked++
	case "m":
		_, err := fmt.Sscanf(line, "m %d", &n)
		require.NoError(t, err)
		h.Medium = max(h.Medium, h.Life+n)
	case "z":
		h.Life, h.Medium = h.Acked, h.Acked
	default:
		require.Fail(t, "the process says", line)
	}
}

// momentProcess is the process, and what it says.
type momentProcess struct {
	*crawl
	heard *history
}

func startMoment(t testing.TB, dir, store string, h *history) *momentProcess {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestMomentChild$", "-frontier.moment-child="+dir,
		"-frontier.crash-store="+store, "-frontier.crash-first="+strconv.Itoa(h.after(len(h.Events)).known+1))
	pipe, out, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	require.NoError(t, cmd.Start())
	require.NoError(t, out.Close())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = pipe.Close()
	})
	p := &momentProcess{&crawl{Cmd: cmd, pipe: pipe, in: bufio.NewReader(pipe)}, h}
	for before := h.Acked; h.Acked == before; { // it listens to signals by now
		p.line(t)
	}
	return p
}

// line hears a line, and returns false when the process says no more.
func (p *momentProcess) line(t testing.TB) bool {
	t.Helper()
	line, err := p.in.ReadString('\n')
	line, p.part = p.part+line, ""
	if line == "PASS\n" {
		return false
	}
	if err != nil {
		require.FailNow(t, "the process ended by itself", "%q, %v", line, p.Wait())
	}
	p.heard.hear(t, line)
	return true
}

// during hears it for a time.
func (p *momentProcess) during(t testing.TB, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		p.line(t)
	}
}

// close lets the process close everything.
func (p *momentProcess) close(t testing.TB) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	for p.line(t) {
	}
	require.NoError(t, p.Wait())
	require.Equal(t, len(p.heard.Events), p.heard.Life, "it has closed everything")
}

// holding is what a folder holds.
type holding struct {
	visits map[int]int  // of each URL that waits
	twice  int          // URLs that wait more than once
	known  map[int]bool // URLs that need not wait
}

// holdingOf opens a folder, and returns what it holds of the first n URLs.
func holdingOf(dir string, n int) (x holding, err error) {
	db, err := spill.Open(dir, spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	f, err := frontier.Open(context.Background(), crashOptions(db, simclock.New(time.Now())))
	if err != nil {
		return x, err
	}
	defer func() { err = errors.Join(err, f.Check(), f.Close()) }()
	x = holding{visits: map[int]int{}, known: map[int]bool{}}
	for u, err := range inspect.New(f).Scan(context.Background(), scope.All()) {
		if err != nil {
			return x, err
		}
		n := momentNumber(u.Entry.URL)
		if _, twice := x.visits[n]; twice {
			x.twice++
		}
		x.visits[n] = u.History.Visits
	}
	for from := 1; from <= n; from += 500 {
		var es []frontier.Entry
		for i := from; i < from+500 && i <= n; i++ {
			es = append(es, frontier.Entry{URL: momentURL(i).URL})
		}
		vs, err := f.AddVerdicts(context.Background(), es...)
		if err != nil {
			return x, err
		}
		for i, v := range vs {
			x.known[from+i] = v == frontier.EntryKnown
		}
	}
	return x, nil
}

// isOne returns which of the states from one event on a folder has, which it opens.
func (h *history) isOne(dir string, from int) (at int, err error) {
	all := h.after(len(h.Events)).known
	x, err := holdingOf(dir, all)
	if err != nil {
		return 0, err
	}
	if x.twice > 0 {
		return 0, fmt.Errorf("%w: %d URLs wait twice", errNoMoment, x.twice)
	}
	known := 0
	for n := 1; n <= all; n++ {
		if x.known[n] && known < n-1 {
			return 0, fmt.Errorf("%w: URL %d is known, %d is not", errNoMoment, n, known+1)
		} else if x.known[n] {
			known = n
		}
	}
	return h.find(from, known, x.visits)
}

// after is the state after n events.
func (h *history) after(n int) *moment {
	m := &moment{visits: map[int]int{}}
	for _, e := range h.Events[:n] {
		m.apply(e)
	}
	return m
}

var errNoMoment = errors.New("what is left is not the state after any call")

// find returns the last event after which the state was that.
func (h *history) find(from, known int, visits map[int]int) (int, error) {
	m := h.after(0)
	differ := map[int]bool{} // of these URLs
	see := func(n int) {
		want, ok := m.visits[n]
		got, there := visits[n]
		if delete(differ, n); ok != there || want != got {
			differ[n] = true
		}
	}
	for n := range visits {
		see(n)
	}
	best, at := len(differ), -1
	for i := 0; ; i++ {
		if m.known == known && len(differ) == 0 {
			at = i
		}
		if m.known == known {
			best = min(best, len(differ))
		}
		if i == len(h.Events) {
			break
		}
		e, before := h.Events[i], m.known
		m.apply(e)
		for n := before + 1; n <= m.known; n++ {
			see(n)
		}
		see(e.Done)
		see(e.Again)
		delete(differ, 0)
	}
	switch {
	case at < 0:
		return 0, fmt.Errorf("%w: %d URLs known, %d wait, in the nearest state %d differ", errNoMoment, known, len(visits), best)
	case at < from:
		return at, fmt.Errorf("%w: it is the state after call %d, and %d were on the medium", errNoMoment, at, from)
	}
	return at, nil
}

// momentKinds are stores on volumes.
var momentKinds = []struct {
	name, store, options string
	most                 time.Duration // between two cuts
}{
	{"commit-5", "plain", "commit=5,data=ordered", 9 * time.Second},
	{"commit-1", "plain", "commit=1,data=ordered", 4 * time.Second},
	{"small", "tables", "commit=1,data=ordered", 3 * time.Second},
	{"sync", "sync", "commit=5,data=ordered", 3 * time.Second},
}

// TestPowerCutLeavesOneMoment cuts the power of a process that had time to remove files. In half of
// the cuts the kernel alone decides what reaches the medium.
func TestPowerCutLeavesOneMoment(t *testing.T) {
	if *momentCuts == 0 {
		t.Skip("takes minutes; go run ./proof -only power-moment")
	}
	for _, kind := range momentKinds {
		if *momentOnly != "" && !strings.Contains(","+*momentOnly+",", ","+kind.name+",") {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			rnd := harness.NewRand(t)
			tries := trycount.Of(t)
			var events, lost, most int
			for cuts := 0; cuts < *momentCuts; {
				v := spilltest.NewVolume(t, 512<<20, kind.options)
				dir := filepath.Join(v.Dir, "store")
				h := &history{}
				p := startMoment(t, dir, kind.store, h)
				p.during(t, time.Duration(rnd.Int64N(int64(kind.most/4))))
				p.close(t)
				p = startMoment(t, dir, kind.store, h)
				for range 4 { // of one life, which goes on
					if cuts++; cuts > *momentCuts {
						break
					}
					p.during(t, kind.most/4+time.Duration(rnd.Int64N(int64(kind.most))))
					p.pause(t, func() { p.line(t) })
					if rnd.IntN(2) == 0 {
						writeBack(t, rnd, v, dir)
					}
					left := v.PowerLoss(t)
					require.NoError(t, p.Process.Signal(syscall.SIGCONT))
					then := *h
					from := then.Medium
					if kind.store == "sync" {
						from = then.Acked
					}
					folder := filepath.Join(left.Dir, "store")
					untouched := keepUntouched(t, folder)
					at, err := then.isOne(folder, from)
					if err != nil {
						t.Errorf("cut %d, after %d calls, %d of them on the medium, %d in earlier lives: %v", cuts, then.Acked, from, then.Life, err)
						keepBroken(t, &then, untouched, folder)
						at = then.Acked
					}
					left.Unmount()
					tries.Tried(1)
					events, lost, most = events+then.Acked, lost+max(0, then.Acked-at), max(most, then.Acked-at)
				}
				require.NoError(t, p.Process.Kill())
				_ = p.Wait()
				v.Unmount()
			}
			t.Logf("%d cuts; the latest %d of %d calls lost, at most %d in a cut", *momentCuts, lost, events, most)
		})
	}
}

// keepUntouched copies a folder before it is opened, if the test keeps broken ones.
func keepUntouched(t testing.TB, folder string) string {
	t.Helper()
	if *momentKeep == "" {
		return ""
	}
	return copyFolder(t, folder)
}

// keepBroken keeps a store as the loss of power left it, as opening left it, and what it should
// hold.
func keepBroken(t testing.TB, h *history, untouched, opened string) {
	t.Helper()
	if *momentKeep == "" {
		return
	}
	require.NoError(t, os.MkdirAll(*momentKeep, 0o755))
	to, err := os.MkdirTemp(*momentKeep, "store-")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(to, "untouched"), os.DirFS(untouched)))
	require.NoError(t, os.CopyFS(filepath.Join(to, "opened"), os.DirFS(opened)))
	b, err := json.Marshal(h)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(to, "history.json"), b, 0o644))
}

// TestRepairOfBrokenStores shows what opening and Repair make of stores that
// TestPowerCutLeavesOneMoment has kept: as the loss of power left them, and as an older program's
// opening left them.
func TestRepairOfBrokenStores(t *testing.T) {
	if *momentKeep == "" || *momentOnly != "" {
		t.Skip("needs the stores of an older program, in -frontier.moment-keep")
	}
	stores, err := filepath.Glob(filepath.Join(*momentKeep, "store-*"))
	require.NoError(t, err)
	for _, store := range stores {
		var h history
		b, err := os.ReadFile(filepath.Join(store, "history.json"))
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, &h))
		at, err := h.isOne(copyFolder(t, filepath.Join(store, "untouched")), h.Medium)
		t.Logf("%s: %d calls, %d in earlier lives; opens in the state after call %d, %v", filepath.Base(store), h.Acked, h.Life, at, err)
		for _, as := range []string{"untouched", "opened"} {
			to := filepath.Join(t.TempDir(), "repaired")
			report, err := spill.Repair(context.Background(), filepath.Join(store, as), to, spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1})
			if err != nil {
				t.Errorf("%s, %s: %v", filepath.Base(store), as, err)
				continue
			}
			m := h.after(h.Acked)
			x, err := holdingOf(to, m.known)
			saved, again := 0, 0
			for n := range x.visits {
				if _, ok := m.visits[n]; ok {
					saved++
				} else {
					again++
				}
			}
			known := 0
			for n, ok := range x.known {
				if ok && n <= m.known {
					known++
				}
			}
			t.Logf("  repaired, %s: %d of %d waiting URLs, %d that were done, %d twice, %d of %d known; %d blocks, %d batches, %d losses; %v", as, saved, len(m.visits), again, x.twice, known, m.known, report.Blocks, report.Batches, len(report.Lost), err)
		}
	}
}
