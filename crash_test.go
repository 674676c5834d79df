// This file kills a process that crawls, at random moments, and looks at what is
// left: all that was acknowledged, exactly once.

package frontier_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/tally"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

var (
	crashChild  = flag.String("frontier.crash-child", "", "be the process that is killed, with the store in this folder")
	crashFirst  = flag.Int("frontier.crash-first", 0, "first URL number of that process")
	crashRounds = flag.Int("frontier.crash-rounds", 4, "how often TestKill kills")
	seed        = flag.Uint64("frontier.seed", 0, "replay random tests with this seed; 0: a new one")
)

// newRand returns a source whose seed is logged for replay.
func newRand(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay with -frontier.seed=%d", s)
	return rand.New(rand.NewPCG(s, 1))
}

func crashURL(n int) string { return fmt.Sprintf("http://h%d.example/%d", n%97, n) }

func crashNumber(url string) int {
	n, _ := strconv.Atoi(url[strings.LastIndexByte(url, '/')+1:])
	return n
}

// ahead is a clock that is so much ahead of the system's.
type ahead time.Duration

func (a ahead) Now() time.Time { return time.Now().Add(time.Duration(a)) }

func (a ahead) AfterFunc(d time.Duration, f func()) frontier.Timer { return time.AfterFunc(d, f) }

func openCrash(t testing.TB, dir string, c frontier.Clock) (*frontier.Frontier, func()) {
	db, err := spill.Open(dir, spill.Options{})
	require.NoError(t, err)
	f, err := frontier.Open(context.Background(), frontier.Options{
		Spill: db, Delay: frontier.FixedDelay(0), MemoryBudget: db.Footprint() + 24<<20, Clock: c,
	})
	require.NoError(t, err)
	return f, func() {
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
		require.NoError(t, db.Close())
	}
}

// TestCrashChild is the process that TestKill kills. It tells on its standard
// output what was acknowledged: "a FIRST N" for added URLs, "l N" for a lease,
// "d N FIRST LINKS" for a lease that is done, with outlinks, "s N" for one that is
// to come again the next day. Some URLs are scheduled for then from the start, and
// some of these forced to come at once.
func TestCrashChild(t *testing.T) {
	if *crashChild == "" {
		t.Skip("only a part of TestKill")
	}
	f, _ := openCrash(t, *crashChild, nil)
	ctx := context.Background()
	var mu sync.Mutex
	next := *crashFirst
	take := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		next += n
		return next - n
	}
	say := func(format string, args ...any) {
		fmt.Fprintf(os.Stdout, format+"\n", args...) // one write, no buffer
	}
	for range 2 {
		go func() {
			var later []int // scheduled, and not yet forced
			for {
				n := 1 + rand.IntN(40)
				first := take(n)
				var es []frontier.Entry
				for i := range n {
					e := frontier.Entry{URL: crashURL(first + i), Depth: i % 8}
					if (first+i)%5 == 0 {
						e.NotBefore = time.Now().Add(day + time.Duration(rand.Int64N(int64(time.Hour))))
					}
					es = append(es, e)
				}
				if _, err := f.Add(ctx, es...); err == nil {
					say("a %d %d", first, n)
				}
				if first%5 == 0 {
					later = append(later, first)
				}
				if len(later) > 10 { // forced once: one that is done would come again
					_, _ = f.Add(ctx, frontier.Entry{URL: crashURL(later[0]), Force: true})
					later = later[1:]
				}
			}
		}()
	}
	go func() {
		for ; ; time.Sleep(5 * time.Millisecond) {
			_ = f.MoveNow(rand.IntN(2) == 0)
		}
	}()
	for range 8 {
		go func() {
			for l := range f.Leases(ctx) {
				say("l %d", crashNumber(l.Entry.URL))
				var o frontier.Outcome
				if x := crashNumber(l.Entry.URL); x%7 == 0 && l.History.Visits == 0 {
					o.Next = time.Now().Add(day)
					if f.Done(l, o) == nil {
						say("s %d", x)
					}
					continue
				}
				n := rand.IntN(3)
				first := take(n)
				for i := range n {
					o.Add = append(o.Add, frontier.Entry{URL: crashURL(first + i)})
				}
				if f.Done(l, o) == nil {
					say("d %d %d %d", crashNumber(l.Entry.URL), first, n)
				}
			}
		}()
	}
	time.Sleep(time.Minute) // killed long before
}

func TestKill(t *testing.T) {
	r := newRand(t)
	tries := tally.Of(t)
	dir := t.TempDir()
	added, done := map[int]bool{}, map[int]bool{}
	leased := map[int]bool{} // when the process died: a Done may have been durable, and not told
	first := 1
	for range *crashRounds {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$", "-frontier.crash-child="+dir, "-frontier.crash-first="+strconv.Itoa(first))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.Stderr = os.Stderr
		require.NoError(t, cmd.Start())
		after := 1 + r.IntN(4000) // lines; time would depend on the machine
		in := bufio.NewReader(out)
		for n := 0; ; n++ {
			line, err := in.ReadString('\n')
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			var a, b, c int
			switch {
			case strings.HasPrefix(line, "a "):
				_, err = fmt.Sscanf(line, "a %d %d", &a, &b)
				for i := range b {
					added[a+i] = true
				}
				first = max(first, a+b)
			case strings.HasPrefix(line, "l "):
				_, err = fmt.Sscanf(line, "l %d", &a)
				require.False(t, done[a], "URL %d was done and handed out again", a)
				leased[a] = true
			case strings.HasPrefix(line, "s "):
				_, err = fmt.Sscanf(line, "s %d", &a)
				delete(leased, a)
			case strings.HasPrefix(line, "d "):
				_, err = fmt.Sscanf(line, "d %d %d %d", &a, &b, &c)
				done[a] = true
				delete(leased, a)
				for i := range c {
					added[b+i] = true
				}
				first = max(first, b+c)
			}
			require.NoError(t, err, line)
			if n == after {
				require.NoError(t, cmd.Process.Kill())
			}
		}
		require.Error(t, cmd.Wait(), "it was killed")
		tries.Tried(1)
		first += 100_000 // beyond what was not acknowledged
	}
	f, closed := openCrash(t, dir, ahead(2*day))
	defer closed()
	seen := map[int]bool{}
	for l, err := range f.Leases(context.Background()) {
		require.NoError(t, err)
		n := crashNumber(l.Entry.URL)
		require.False(t, done[n], "URL %d was done before the kill and comes again", n)
		require.False(t, seen[n], "URL %d comes twice", n)
		seen[n] = true
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}
	for n := range added {
		require.True(t, done[n] || seen[n] || leased[n], "URL %d was admitted and is lost", n)
	}
	t.Logf("%d URLs acknowledged, %d done before the kills, %d left", len(added), len(done), len(seen))
}
