// This file gives a frontier what it must refuse, and looks that nothing is lost.

package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/selector"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

var badEntries = []struct {
	name  string
	e     frontier.Entry
	fault string
}{
	{"empty", frontier.Entry{}, "empty URL"},
	{"no scheme", frontier.Entry{URL: "a.example/x"}, "not an absolute URL"},
	{"scheme missing before the host", frontier.Entry{URL: "//a.example/"}, "not an absolute URL"},
	{"empty scheme", frontier.Entry{URL: "://a.example/"}, "not an absolute URL"},
	{"no host", frontier.Entry{URL: "http:///x"}, "no host"},
	{"nothing after the scheme", frontier.Entry{URL: "http://"}, "no host"},
	{"only a port", frontier.Entry{URL: "http://:80/"}, "no host"},
	{"only a dot", frontier.Entry{URL: "http://./"}, "no host"},
	{"an address of a person", frontier.Entry{URL: "mailto:a@b.example"}, "not an absolute URL with a host"},
	{"a bracket left open", frontier.Entry{URL: "http://[::1/"}, "invalid host"},
	{"an escape in the host", frontier.Entry{URL: "http://a%zz.example/"}, "character '%' in host"},
	{"a bad port", frontier.Entry{URL: "http://a.example:x/"}, "invalid port"},
	{"a space in the host", frontier.Entry{URL: "http://a b/"}, "character ' ' in URL"},
	{"a control character", frontier.Entry{URL: "http://a.example/\n"}, "character '\\n' in URL"},
	{"a host of 256 bytes", frontier.Entry{URL: "http://" + strings.Repeat("a", 256) + "/"}, "256 bytes; want at most 255"},
	{"a URL of over 64 KiB", frontier.Entry{URL: "http://a.example/" + strings.Repeat("x", 64<<10)}, "URL has 65553 bytes; want at most 65536"},
	{"a Meta of over 64 KiB", frontier.Entry{URL: "http://a.example/", Meta: make([]byte, 65537)}, "Meta has 65537 bytes; want at most 65536"},
	{"a negative depth", frontier.Entry{URL: "http://a.example/", Depth: -1}, "Depth is -1; want >= 0"},
	{"a depth beyond all", frontier.Entry{URL: "http://a.example/", Depth: 1<<30 + 1}, "want at most 1073741824"},
}

func TestBadEntriesAreReportedAndTheOthersAdmitted(t *testing.T) {
	var batch []frontier.Entry
	var good []string
	for i, b := range badEntries {
		good = append(good, fmt.Sprintf("http://h%d.example/", i))
		batch = append(batch, b.e, frontier.Entry{URL: good[i]})
	}
	reported := func(t *testing.T, errs []*frontier.EntryError) {
		t.Helper()
		require.Len(t, errs, len(badEntries))
		for i, b := range badEntries {
			require.Equal(t, 2*i, errs[i].Index, b.name)
			require.ErrorContains(t, errs[i], b.fault, b.name)
			require.True(t, strings.HasPrefix(b.e.URL, strings.TrimSuffix(errs[i].URL, "...")), b.name)
			require.Less(t, len(errs[i].Error()), 1000, b.name)
		}
	}
	t.Run("in Add", func(t *testing.T) {
		harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
			for _, fresh := range []int{len(good), 0} {
				n, err := w.F.Add(t.Context(), batch...)
				require.Equal(t, fresh, n)
				errs := frontier.EntryErrors(err)
				reported(t, errs)
				var first *frontier.EntryError
				require.ErrorAs(t, err, &first)
				require.Same(t, errs[0], first)
			}
			require.EqualValues(t, 2*len(badEntries), w.F.Stats().Refused)
			require.ElementsMatch(t, good, w.Rest())
		})
	})
	t.Run("in Done", func(t *testing.T) {
		harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
			w.Add("http://start.example/")
			refused, err := w.F.DoneContext(t.Context(), w.Next(), frontier.Outcome{Add: batch})
			require.NoError(t, err, "the page is done, and its good links are in")
			reported(t, refused)
			require.EqualValues(t, len(badEntries), w.F.Stats().Refused)
			require.ElementsMatch(t, good, w.Rest())
		})
	})
	t.Run("alone", func(t *testing.T) {
		harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
			for _, b := range badEntries {
				b.e.Force = true
				n, err := w.F.Add(t.Context(), b.e)
				require.Zero(t, n)
				require.Len(t, frontier.EntryErrors(err), 1)
			}
			w.Over()
			require.Zero(t, w.F.Stats().Known)
		})
	})
}

func TestBadHostKeysAreReported(t *testing.T) {
	mine := errors.New("mine")
	keys := map[string]string{"http://empty/": "", "http://long/": strings.Repeat("x", 256), "http://max/": strings.Repeat("x", 255), "http://bytes/": "\x00\xff"}
	harness.InBothWorlds(t, frontier.Options{HostKey: func(u string) (string, error) {
		k, ok := keys[u]
		if !ok {
			return "ignored", mine
		}
		return k, nil
	}}, func(t *testing.T, w *harness.World) {
		n, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://empty/"}, frontier.Entry{URL: "http://max/"},
			frontier.Entry{URL: "http://long/"}, frontier.Entry{URL: "http://bytes/"}, frontier.Entry{URL: "http://error/"})
		require.Equal(t, 2, n)
		require.ErrorIs(t, err, mine)
		errs := frontier.EntryErrors(err)
		require.Len(t, errs, 3)
		require.ErrorContains(t, errs[0], "host key has 0 bytes; want 1 to 255")
		require.ErrorContains(t, errs[1], "host key has 256 bytes; want 1 to 255")
		require.ElementsMatch(t, []string{"http://max/", "http://bytes/"}, w.Rest())
	})
}

func TestPrioritizerOutOfRange(t *testing.T) {
	for _, p := range []int{0, -1, 9, 257, math.MaxInt, math.MinInt} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			bad := false
			o := frontier.Options{Delay: frontier.FixedDelay(0), Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int {
				if bad || strings.HasSuffix(e.URL, "/bad") {
					return p
				}
				return 3
			})}
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				bad = false
				n, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://a.example/bad"}, frontier.Entry{URL: "http://a.example/2"})
				require.Equal(t, 2, n)
				errs := frontier.EntryErrors(err)
				require.Len(t, errs, 1)
				require.Equal(t, 1, errs[0].Index)
				var pe *frontier.PriorityError
				require.ErrorAs(t, errs[0], &pe)
				require.Equal(t, frontier.PriorityError{Got: p, Levels: 8}, *pe)

				l := w.NextIs(0, "http://a.example/1")
				bad = true
				err = w.F.Done(l, frontier.Outcome{Next: harness.Dawn.Add(time.Minute)})
				require.ErrorAs(t, err, &pe)
				require.Empty(t, frontier.EntryErrors(err))
				bad = false
				require.NoError(t, w.F.Done(w.NextIs(0, "http://a.example/2"), frontier.Outcome{}))
				l = w.NextIs(time.Minute, "http://a.example/1")
				require.Equal(t, 3, l.Priority, "it keeps its priority")
			})
		})
	}
}

func TestSelectorOutOfRange(t *testing.T) {
	for _, p := range []int{0, -1, 2, 4, 9, 64, 65, 1000, math.MaxInt, math.MinInt} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			bad := false
			o := frontier.Options{Delay: frontier.FixedDelay(0), Selector: selector.Func(func(available []int) int {
				if bad {
					return p
				}
				return available[0]
			})}
			harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
				urls := []string{}
				for _, depth := range []int{5, 5, 1} { // priorities 3 and 7
					u := fmt.Sprintf("http://h%d.example/%d", depth, len(urls))
					urls = append(urls, u)
					_, err := w.F.Add(t.Context(), frontier.Entry{URL: u, Depth: depth})
					require.NoError(t, err)
				}
				bad = true
				want := frontier.SelectorError{Got: p, Available: []int{3, 7}}
				for range 3 {
					var se *frontier.SelectorError
					_, err := w.F.Next(t.Context())
					require.ErrorAs(t, err, &se)
					require.Equal(t, want, *se)
					_, _, err = w.F.TryNext()
					require.ErrorAs(t, err, &se)
					require.Equal(t, want, *se)
				}
				require.NoError(t, w.F.Check())
				bad = false
				require.ElementsMatch(t, urls, w.Rest())
			})
		})
	}
}

// wild is a policy that answers without sense.
type wild struct{ d time.Duration }

func (p wild) Delay(string, frontier.Outcome) time.Duration { return p.d }

func (wild) Max() time.Duration { return -time.Hour }

func (p wild) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) {
	return p.d, true
}

func (p wild) Next(frontier.Visit) (time.Time, frontier.State) {
	return harness.Dawn.Add(p.d), frontier.State{}
}

func TestPoliciesWithoutSenseLoseNothing(t *testing.T) {
	for _, d := range []time.Duration{math.MinInt64, -1, math.MaxInt64} {
		t.Run(d.String(), func(t *testing.T) {
			harness.InBothWorlds(t, frontier.Options{Delay: wild{d}, GroupDelay: wild{d}, Retry: wild{d}, Scheduler: wild{d}}, func(t *testing.T, w *harness.World) {
				w.Add("http://a.example/", "http://b.example/")
				for _, r := range []frontier.Result{frontier.Visited, frontier.Failed} {
					l := w.Next()
					require.NoError(t, w.F.Join(&l, "g"))
					require.NoError(t, w.F.Done(l, frontier.Outcome{Result: r}))
					require.NoError(t, w.F.Check())
					w.Clock.Advance(31 * 24 * time.Hour)
				}
				w.F.Stats()
				x := w.F.Stats()
				require.EqualValues(t, 2, x.Waiting+x.Scheduled)
			})
		})
	}
}

func TestOutcomeWithoutSense(t *testing.T) {
	far := []time.Time{harness.Dawn.AddDate(9000, 0, 0), harness.Dawn.AddDate(-2000, 0, 0), time.Unix(1<<62, 0), time.Unix(-1<<62, 0), time.UnixMilli(math.MaxInt64), time.UnixMilli(math.MinInt64)}
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FixedDelay(0)}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		l := w.Next()
		for fault, o := range map[string]frontier.Outcome{
			"Result is 8; want 0 to 7":           {Result: 8},
			"Result is 255; want 0 to 7":         {Result: 255},
			"put off without a Next":             {Result: frontier.PutOff},
			"requeue with Move; want put off":    {Result: frontier.Requeue, Move: true},
			"requeue with Next, but the URL":     {Result: frontier.Requeue, Next: harness.Dawn},
			"CrawlDelay is -2ns; want 0 or at":   {CrawlDelay: -2},
			"Crawl is 3 without Move":            {Crawl: 3},
			"visited with Uncontacted":           {Uncontacted: true},
			"failed with Uncontacted":            {Result: frontier.Failed, Uncontacted: true},
			"Meta has 65537 bytes; want at most": {Meta: make([]byte, 65537)},
		} {
			o.Add = []frontier.Entry{{URL: "http://never.example/"}}
			require.ErrorContains(t, w.F.Done(l, o), fault)
		}
		require.EqualValues(t, 1, w.F.Stats().Leased, "the lease is still out")
		require.NoError(t, w.F.Done(l, harness.Requeue))

		for i, at := range far {
			u := fmt.Sprintf("http://b.example/%d", i)
			w.Add(u)
			n, err := w.F.Add(t.Context(), frontier.Entry{URL: fmt.Sprintf("http://c.example/%d", i), NotBefore: at, Weight: math.NaN()})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		for i := range 3 * len(far) {
			l, _, err := w.TryNext()
			if err != nil {
				require.ErrorIs(t, err, frontier.ErrNotDue)
				break
			}
			at := far[i%len(far)]
			require.NoError(t, w.F.Done(l, frontier.Outcome{
				Result: frontier.Result(i % 6), Ended: at, Modified: at, Next: at,
				Duration: math.MinInt64, CrawlDelay: frontier.NoCrawlDelay, RetryAfter: math.MinInt64, Bytes: -1,
			}))
			require.NoError(t, w.F.Check())
		}
		w.Add("http://d.example/")
		l, _, err := w.TryNext()
		require.NoError(t, err)
		require.NoError(t, w.F.Done(l, frontier.Outcome{Duration: math.MaxInt64, CrawlDelay: math.MaxInt64, RetryAfter: math.MaxInt64}))
		if w.Machine != nil {
			x := w.F.Stats()
			w.Reopen()
			w.F.Stats()
			y := w.F.Stats()
			require.Equal(t, x.Waiting+x.Scheduled, y.Waiting+y.Scheduled)
		}
	})
}

// Seconds without their unit are nanoseconds: Done says so, and the lease is out as before.
func TestPausesWithoutAUnitAreRefused(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		l := w.Next()
		require.EqualError(t, w.F.Done(l, frontier.Outcome{Result: frontier.Failed, RetryAfter: 3}), "frontier: outcome: RetryAfter is 3ns; want 0 or at least 1µs: is the unit missing?")
		require.EqualError(t, w.F.Done(l, frontier.Outcome{CrawlDelay: 10}), "frontier: outcome: CrawlDelay is 10ns; want 0 or at least 1ms: is the unit missing?")
		require.NoError(t, w.F.Done(l, frontier.Outcome{RetryAfter: time.Microsecond, Duration: 30}), "the rest until a date, and what was measured")
	})
}

func TestArgumentsWithoutSense(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/", "http://b.example/")
		l := w.Next()
		was := l
		for _, d := range []time.Duration{0, -1, math.MinInt64, 720*time.Hour + 1, math.MaxInt64} {
			require.ErrorContains(t, w.F.Extend(&l, d), "want more than 0 and at most 720h")
		}
		for _, g := range []string{"", strings.Repeat("g", 256)} {
			require.ErrorContains(t, w.F.Join(&l, g), "want 1 to 255")
			_, err := w.F.Contact(t.Context(), g)
			require.ErrorContains(t, err, "want 1 to 255")
		}
		require.Equal(t, was, l)
		require.NoError(t, w.F.Join(&l, strings.Repeat("g", 255)))

		for _, none := range []frontier.Lease{{}, {Entry: frontier.Entry{URL: "http://a.example/"}, Host: "a.example", Attempt: 1}} {
			require.ErrorIs(t, w.F.Done(none, frontier.Outcome{RetryAfter: time.Hour}), frontier.ErrNotLeased)
			require.ErrorIs(t, w.F.Extend(&none, time.Second), frontier.ErrNotLeased)
			require.ErrorIs(t, w.F.Join(&none, "g"), frontier.ErrNotLeased)
			_, err := w.F.HandBack(none)
			require.ErrorIs(t, err, frontier.ErrNotLeased)
			require.False(t, none.ContactOnly())
		}
		require.NoError(t, w.F.Done(l, harness.Requeue))
		for _, host := range []string{"", strings.Repeat("x", 300)} { // a late lease, tampered with
			late := l
			late.Host = host
			require.ErrorIs(t, w.F.Done(late, frontier.Outcome{}), frontier.ErrNotLeased)
		}
		require.ElementsMatch(t, []string{"http://a.example/", "http://b.example/"}, w.Rest())
	})
}

func TestLeaseOfAnotherFrontier(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		x := harness.NewWorld(t, frontier.Options{})
		if w.Machine != nil {
			x = harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
		}
		w.Add("http://a.example/")
		x.Add("http://a.example/")
		mine, other := w.Next(), x.Next()
		require.ErrorIs(t, w.F.Done(other, frontier.Outcome{}), frontier.ErrNotLeased)
		require.ErrorIs(t, w.F.Extend(&other, time.Second), frontier.ErrNotLeased)
		require.ErrorIs(t, w.F.Join(&other, "g"), frontier.ErrNotLeased)
		_, err := w.F.HandBack(other)
		require.ErrorIs(t, err, frontier.ErrNotLeased)
		require.NoError(t, w.F.Done(mine, harness.Requeue))
		require.Equal(t, []string{"http://a.example/"}, w.Rest())
	})
}

func TestFolderThatCannotBeUsed(t *testing.T) {
	o := spill.Options{MemoryBudget: 64 << 20, DiskReserve: 1}
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	_, err := spill.Open(file, o)
	require.ErrorContains(t, err, file)
	left, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "precious", string(left))

	if runtime.GOOS != "windows" && os.Getuid() != 0 { // to root nothing is read-only
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o500))
		_, err = spill.Open(dir, o)
		require.ErrorContains(t, err, dir)
	}

	dir := t.TempDir()
	s, err := spill.Open(dir, o)
	require.NoError(t, err)
	_, err = spill.Open(dir, o) // locked as for another process
	require.ErrorIs(t, err, frontier.ErrInUse)
	require.ErrorContains(t, err, dir)
	require.NoError(t, s.Close())
	_, err = frontier.Open(context.Background(), frontier.Options{Spill: s})
	require.ErrorIs(t, err, frontier.ErrClosed)
}

func TestStoreHasOneFrontier(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/")
	_, err := frontier.Open(t.Context(), w.Options)
	require.ErrorIs(t, err, frontier.ErrInUse)
	require.Equal(t, []string{"http://a.example/"}, w.Rest(), "the first goes on")
	w.Add("http://b.example/")
	w.Reopen()
	require.Equal(t, []string{"http://b.example/"}, w.Rest())
}

func TestOpenStopsWithItsContext(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/")
	harness.Ended(t, w.F)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := frontier.Open(ctx, w.Options)
	require.ErrorIs(t, err, context.Canceled)
	w.Open()
	require.Equal(t, []string{"http://a.example/"}, w.Rest())
}

// The late end of a failed Open does not end the use by a successful one.
func TestOpenThatFailedReleasesNothing(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/")
	harness.Ended(t, w.F)
	o := w.Options
	o.Spill = overtaken{Spill: w.Options.Spill, by: w.Open}
	_, err := frontier.Open(t.Context(), o)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"http://a.example/"}, w.Rest())
}

// overtaken is a Spill that another frontier takes into use before a Recover fails.
type overtaken struct {
	storage.Spill
	by func()
}

func (s overtaken) Recover(context.Context, storage.Recovery) error {
	s.by()
	return context.Canceled
}

// Rows of a newer version, or cut short, end Open, and stay as they are.
func TestRowsThatCannotBeRead(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/1", "http://a.example/2")
	require.NoError(t, w.F.Done(w.Next(), frontier.Outcome{CrawlDelay: time.Minute}))
	w.Reopen()
	w.Add("http://b.example/") // the rows have left the log
	meta := func(k []byte) bool { return len(k) == 6 && k[4] == 'R' && k[5] == 'm' }
	host := func(k []byte) bool { return bytes.HasSuffix(k, []byte("h:a.example")) }
	var corrupt *frontier.CorruptError
	for _, c := range []struct {
		name   string
		row    func([]byte) bool
		damage func([]byte) []byte
		want   func(error) bool
	}{
		{"a newer version", meta, func(v []byte) []byte { v[0]++; return v }, func(err error) bool { return errors.Is(err, frontier.ErrVersion) }},
		{"empty", meta, func([]byte) []byte { return []byte{} }, func(err error) bool { return errors.As(err, &corrupt) }},
		{"without its end", meta, func(v []byte) []byte { return v[:len(v)-1] }, func(err error) bool { return errors.As(err, &corrupt) }},
		{"without its middle", meta, func(v []byte) []byte { return v[:9] }, func(err error) bool { return errors.As(err, &corrupt) }},
		{"an empty host", host, func([]byte) []byte { return []byte{} }, func(err error) bool { return errors.As(err, &corrupt) }},
		{"a host cut short", host, func(v []byte) []byte { return v[:1] }, func(err error) bool { return errors.As(err, &corrupt) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := w.Machine.Kill(t)
			hit := 0
			m.Damage(func(k, v []byte) []byte {
				if c.row(k) {
					hit++
					return c.damage(v)
				}
				return v
			})
			require.Equal(t, 1, hit)
			o := w.Options
			o.Spill = m.Store
			for range 2 {
				_, err := frontier.Open(t.Context(), o)
				require.True(t, err != nil && c.want(err), "%v", err)
			}
		})
	}
	require.ElementsMatch(t, []string{"http://a.example/2", "http://b.example/"}, w.Killed().Rest())
}

func TestFewerPrioritiesThanTheStoreHas(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/")
	harness.Ended(t, w.F)
	o := w.Options
	o.Priorities = 7
	_, err := frontier.Open(t.Context(), o)
	require.ErrorContains(t, err, "priority 8; Priorities is 7")
	w.Open()
	require.Equal(t, []string{"http://a.example/"}, w.Rest())
}
