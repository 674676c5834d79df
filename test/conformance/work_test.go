package conformance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/simclock"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// workOn runs a test on a frontier with the system's clock, in a bubble.
func workOn(t *testing.T, o frontier.Options, test func(t *testing.T, f *frontier.Frontier)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), o)
		require.NoError(t, err)
		defer harness.Ended(t, f)
		test(t, f)
		require.Zero(t, f.Stats().Leased, "no lease is out")
	})
}

// seeded adds URLs of as many hosts.
func seeded(t require.TestingT, f *frontier.Frontier, n int) {
	for i := range n {
		_, err := f.Add(context.Background(), frontier.Entry{URL: fmt.Sprintf("http://h%d.example/", i)})
		require.NoError(t, err)
	}
}

// rest works until the crawl is over, and returns the tries of the URLs that it saw.
func rest(t require.TestingT, f *frontier.Frontier) map[string]int {
	var mu sync.Mutex
	got := map[string]int{}
	require.NoError(t, f.Work(context.Background(), 3, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
		mu.Lock()
		defer mu.Unlock()
		got[l.Entry.URL] = l.Attempt
		return frontier.Outcome{}, nil
	}))
	return got
}

func TestWorkCrawlsToTheEnd(t *testing.T) {
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 1)
		var all, busy, most atomic.Int64
		require.NoError(t, f.Work(t.Context(), 5, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, l.Deadline, deadline)
			most.Store(max(most.Load(), busy.Add(1)))
			defer busy.Add(-1)
			time.Sleep(time.Second)
			all.Add(1)
			var links []frontier.Entry
			for i := range 3 {
				if l.Entry.Depth < 3 {
					links = append(links, frontier.Entry{URL: fmt.Sprintf("http://%d.%s/", i, l.Host), Depth: l.Entry.Depth + 1})
				}
			}
			return frontier.Outcome{Add: links}, nil
		}))
		require.EqualValues(t, 1+3+9+27, all.Load())
		require.EqualValues(t, 5, most.Load())
		require.ErrorContains(t, f.Work(t.Context(), 0, nil), "0 workers; want at least 1")
		require.ErrorContains(t, f.Work(t.Context(), 1, nil), "the function is nil")
	})
}

// An error of the program stops Work. Its lease, and those of fetches that this cut, are handed back.
func TestWorkStopsAtAnError(t *testing.T) {
	mine := errors.New("my database")
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 3)
		err := f.Work(t.Context(), 3, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
			switch l.Host {
			case "h0.example":
				time.Sleep(time.Second)
				return frontier.Outcome{Result: frontier.Gone}, fmt.Errorf("saving: %w", mine)
			case "h1.example":
				<-ctx.Done()
				return frontier.Outcome{}, ctx.Err()
			}
			<-ctx.Done()
			return frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTimeout}, nil
		})
		require.ErrorIs(t, err, mine)
		require.NotErrorIs(t, err, context.Canceled)
		require.Equal(t, map[string]int{"http://h0.example/": 1, "http://h1.example/": 1, "http://h2.example/": 1}, rest(t, f))
	})
}

// An error of a context of the program's own is not the end of Work's.
func TestWorkTellsItsContextFromOthers(t *testing.T) {
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 1)
		require.ErrorIs(t, f.Work(t.Context(), 2, func(context.Context, frontier.Lease) (frontier.Outcome, error) {
			return frontier.Outcome{}, context.Canceled
		}), context.Canceled)
		require.Len(t, rest(t, f), 1)
	})
}

// The end of the context is a clean end: what was cut costs no try.
func TestWorkEndsWithItsContext(t *testing.T) {
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := f.Work(ctx, 3, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
			switch l.Host {
			case "h0.example":
				return frontier.Outcome{}, nil
			case "h1.example":
				<-ctx.Done()
				return frontier.Outcome{}, nil // in time
			case "h2.example":
				<-ctx.Done()
				return frontier.Outcome{}, fmt.Errorf("get: %w", ctx.Err())
			}
			<-ctx.Done()
			return frontier.Outcome{Result: frontier.Failed}, nil
		})
		require.Equal(t, context.DeadlineExceeded, err)
		require.Equal(t, map[string]int{"http://h2.example/": 1, "http://h3.example/": 1}, rest(t, f))
	})
}

// A page at which fn panics costs a try, and the panic reaches the caller of Work.
func TestWorkPanicsInItsCaller(t *testing.T) {
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 2)
		func() {
			defer func() {
				err, ok := recover().(error)
				require.True(t, ok)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.ErrorContains(t, err, "work_test.go")
			}()
			_ = f.Work(t.Context(), 2, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
				if l.Host == "h0.example" {
					panic(io.ErrUnexpectedEOF)
				}
				<-ctx.Done()
				return frontier.Outcome{}, ctx.Err()
			})
		}()
		require.Zero(t, f.Stats().Leased)
		require.Equal(t, map[string]int{"http://h0.example/": 2, "http://h1.example/": 1}, rest(t, f))
	})
}

func TestWorkExitsInItsCaller(t *testing.T) {
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 1)
		returned := make(chan bool)
		go func() {
			defer close(returned)
			_ = f.Work(t.Context(), 2, func(context.Context, frontier.Lease) (frontier.Outcome, error) {
				runtime.Goexit()
				panic("not reached")
			})
			returned <- true
		}()
		require.False(t, <-returned)
		require.Equal(t, map[string]int{"http://h0.example/": 2}, rest(t, f))
	})
}

// A fetch ends at its lease's deadline, as a failed try. Its worker goes on, whatever fn says then.
func TestWorkEndsFetchesAtTheirDeadline(t *testing.T) {
	for name, late := range map[string]func(context.Context) (frontier.Outcome, error){
		"an outcome":          func(context.Context) (frontier.Outcome, error) { return frontier.Outcome{}, nil },
		"the context's error": func(ctx context.Context) (frontier.Outcome, error) { return frontier.Outcome{}, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			workOn(t, frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, f *frontier.Frontier) {
				seeded(t, f, 1)
				began, tries := time.Now(), 0
				require.NoError(t, f.Work(t.Context(), 1, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
					if tries++; l.Attempt == 2 {
						return frontier.Outcome{}, nil
					}
					<-ctx.Done()
					require.Equal(t, time.Minute, time.Since(began))
					return late(ctx)
				}))
				require.Equal(t, 2, tries)
				require.EqualValues(t, 1, f.Stats().Expired)
			})
		})
	}
}

// Deadlines are those of the frontier's clock.
func TestWorkKeepsTheFrontiersClock(t *testing.T) {
	clock := simclock.New(harness.Dawn)
	f, err := frontier.Open(t.Context(), frontier.Options{Clock: clock, LeaseTime: time.Minute, Retry: frontier.Retries(1, 0)})
	require.NoError(t, err)
	defer harness.Ended(t, f)
	seeded(t, f, 1)
	begun, done := make(chan bool), make(chan error)
	go func() {
		done <- f.Work(t.Context(), 1, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
			close(begun)
			<-ctx.Done()
			return frontier.Outcome{}, context.Cause(ctx)
		})
	}()
	<-begun
	clock.Advance(time.Minute)
	require.NoError(t, <-done)
	require.EqualValues(t, 1, f.Stats().GivenUp)
}

func TestWorkEndsWithTheFrontier(t *testing.T) {
	slow := func(ctx context.Context, _ frontier.Lease) (frontier.Outcome, error) {
		time.Sleep(time.Minute)
		return frontier.Outcome{}, ctx.Err()
	}
	workOn(t, frontier.Options{KeepOpen: true}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 2)
		time.AfterFunc(time.Second, func() { require.NoError(t, f.Drain(context.Background())) })
		require.NoError(t, f.Work(t.Context(), 5, slow))
		require.EqualValues(t, 2, f.Stats().Done[frontier.Visited], "drained, not cut")
	})
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 2)
		require.NoError(t, f.Pause(scope.Host("h1.example")))
		var held *frontier.HeldError
		require.ErrorAs(t, f.Work(t.Context(), 5, slow), &held)
		require.EqualValues(t, 1, held.Held)
		require.NoError(t, f.Resume(scope.All()))
	})
	synctest.Test(t, func(t *testing.T) {
		f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true})
		require.NoError(t, err)
		seeded(t, f, 2)
		time.AfterFunc(time.Second, func() { require.NoError(t, f.Close()) })
		require.NoError(t, f.Work(t.Context(), 5, slow), "closed while pages are fetched")
	})
}

// What Done refuses to record stops Work with its error, and the URL comes again.
func TestWorkStopsAtErrorsOfDone(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)}, spill.Options{})
	w.Add("http://a.example/")
	bad := func(context.Context, frontier.Lease) (frontier.Outcome, error) {
		return frontier.Outcome{Result: frontier.Visited, Failure: frontier.FailureDNS}, nil
	}
	require.ErrorContains(t, w.F.Work(t.Context(), 1, bad), "visited with Failure dns")
	w.Machine.Faults.FailNth(spilltest.Write, 1, harness.ErrDisk)
	err := w.F.Work(t.Context(), 1, func(context.Context, frontier.Lease) (frontier.Outcome, error) {
		return frontier.Outcome{}, nil
	})
	require.ErrorIs(t, err, harness.ErrDisk)
	require.NotErrorIs(t, err, frontier.ErrNotLeased)
	require.Zero(t, w.F.Stats().Leased)
	require.Equal(t, []string{"http://a.example/"}, w.Rest())
}

// A lease that fn ended itself is left alone.
func TestWorkLeavesEndedLeasesAlone(t *testing.T) {
	workOn(t, frontier.Options{}, func(t *testing.T, f *frontier.Frontier) {
		seeded(t, f, 1)
		robots := true
		require.NoError(t, f.Work(t.Context(), 1, func(_ context.Context, l frontier.Lease) (frontier.Outcome, error) {
			if robots {
				robots = false
				slot, err := f.HandBack(l)
				require.NoError(t, err)
				return frontier.Outcome{}, f.Done(slot, frontier.Outcome{})
			}
			return frontier.Outcome{}, nil
		}))
		require.EqualValues(t, 2, f.Stats().Done[frontier.Visited])
	})
}

// Whatever fn does, every lease ends, and every URL is visited once or comes again.
func TestWorkLosesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		hosts := rapid.IntRange(1, 8).Draw(r, "hosts")
		workers := rapid.IntRange(1, 6).Draw(r, "workers")
		acts := rapid.SliceOfN(rapid.IntRange(0, 7), hosts, hosts).Draw(r, "acts")
		patience := time.Duration(rapid.IntRange(1, 200).Draw(r, "patience")) * time.Second
		synctest.Test(t, func(t *testing.T) {
			f, err := frontier.Open(t.Context(), frontier.Options{LeaseTime: time.Minute, Retry: frontier.Retries(10, time.Second)})
			require.NoError(t, err)
			defer harness.Ended(t, f)
			seeded(t, f, hosts)
			var mu sync.Mutex
			visited := map[string]int{}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			func() {
				defer func() { _ = recover() }()
				_ = f.Work(ctx, workers, func(ctx context.Context, l frontier.Lease) (frontier.Outcome, error) {
					var h int
					_, _ = fmt.Sscanf(l.Host, "h%d.", &h)
					switch act := acts[h]; {
					case l.Attempt > 1 || act == 0:
					case act == 1:
						return frontier.Outcome{Result: frontier.Failed}, nil
					case act == 2:
						return frontier.Outcome{}, io.EOF
					case act == 3:
						panic("here")
					case act == 4: // it minds its context
						<-ctx.Done()
						return frontier.Outcome{}, ctx.Err()
					case act == 5: // it does not
						time.Sleep(2 * time.Minute)
						return frontier.Outcome{Result: frontier.Failed}, nil
					case act == 6:
						return frontier.Outcome{Result: 99}, nil
					case act == 7:
						time.Sleep(time.Second)
					}
					mu.Lock()
					defer mu.Unlock()
					visited[l.Entry.URL]++
					return frontier.Outcome{}, nil
				})
			}()
			require.Zero(t, f.Stats().Leased)
			require.NoError(t, f.Check())
			for url := range rest(t, f) {
				visited[url]++
			}
			require.Len(t, visited, hosts)
			for url, n := range visited {
				require.Equal(t, 1, n, url)
			}
		})
	})
}

// What the program did wrong ends Work with an error, and with nothing more than is lost
// already. What is wrong with a page does not.
func TestWorkReportsMistakesOfTheProgram(t *testing.T) {
	ok := func(frontier.Entry, frontier.History) int { return 1 }
	for name, x := range map[string]struct {
		links []frontier.Entry
		o     frontier.Options
		want  string
	}{
		"relative":     {links: []frontier.Entry{{URL: "/a"}, {URL: "b.html"}, {URL: "//c.example/x"}}, want: `entry 0 "/a"`},
		"one relative": {links: []frontier.Entry{{URL: "http://b.example/"}, {URL: "c?u=http://d.example/"}}, want: "resolve links against the URL of their page"},
		"not normal": {links: []frontier.Entry{{URL: "/a"}}, o: frontier.Options{Normalize: func(u string) (string, error) {
			_, err := frontier.HostName(u)
			return u, err
		}}, want: "resolve links against the URL of their page"},
		"empty":         {links: []frontier.Entry{{}}, want: "empty URL"},
		"faulty":        {links: []frontier.Entry{{URL: "http://b.example/", Depth: -1}}, want: "Depth is -1"},
		"not kept":      {links: []frontier.Entry{{URL: "http://b.example/", Finished: true}}, want: "Finished is for"},
		"bad Host":      {links: []frontier.Entry{{URL: "http://b.example/", Host: "A B"}}, want: "entry 0"},
		"of the web":    {links: []frontier.Entry{{URL: "mailto:x@a.example"}, {URL: "javascript:void(0)"}, {URL: "http://"}, {URL: "http://a b/"}, {URL: "http://b.example/" + strings.Repeat("x", frontier.MaxURL)}}},
		"counts from 0": {links: harness.URLs("b.example", 2), o: frontier.Options{Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return harness.Btoi(e.URL == "http://a.example/") })}, want: "priority 0; want 1 to 8"},
		"no host's key": {links: harness.URLs("b.example", 1), o: frontier.Options{HostKey: func(u string) (string, error) {
			h, err := frontier.HostName(u)
			return strings.TrimPrefix(h, "b.example"), err
		}}, want: "Options.HostKey"},
		"normal is none": {links: harness.URLs("b.example", 1), o: frontier.Options{Normalize: func(u string) (string, error) {
			return u[:len("http://a.example/")*harness.Btoi(strings.HasPrefix(u, "http://a"))], nil
		}}, want: "Options.Normalize"},
	} {
		t.Run(name, func(t *testing.T) {
			x.o.Delay = frontier.FixedDelay(0)
			if x.o.Prioritizer == nil {
				x.o.Prioritizer = frontier.PrioritizerFunc(ok)
			}
			harness.InBothWorlds(t, x.o, func(t *testing.T, w *harness.World) {
				w.Add("http://a.example/")
				pages := 0
				err := w.F.Work(context.Background(), 1, func(_ context.Context, l frontier.Lease) (o frontier.Outcome, err error) {
					if pages++; l.Entry.URL == "http://a.example/" {
						o.Add = x.links
					}
					return o, nil
				})
				require.Zero(t, w.F.Stats().Leased, "its lease has ended, and the page is done")
				if x.want == "" {
					require.NoError(t, err)
					require.EqualValues(t, len(x.links), w.F.Stats().Refused)
					return
				}
				require.ErrorContains(t, err, x.want)
				require.ErrorContains(t, err, "the page is http://a.example/")
				require.NotEmpty(t, frontier.EntryErrors(err))
				require.Equal(t, 1, pages)
			})
		})
	}
}

// Callers that ask what was refused get relative links there.
func TestRelativeLinksAreRefusedOneByOne(t *testing.T) {
	harness.InBothWorlds(t, harness.Quick(), func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/")
		refused, err := w.F.DoneContext(context.Background(), w.Next(), frontier.Outcome{Add: []frontier.Entry{{URL: "/a"}, {URL: "http://b.example/"}}})
		require.NoError(t, err)
		require.Len(t, refused, 1)
		require.Equal(t, "b.example", w.Next().Host)
	})
}

func TestCodeThatLosesLinksIsReported(t *testing.T) {
	o := harness.Quick()
	o.Prioritizer = frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { return 8 - 4*e.Depth })
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		w.Add("http://a.example/1", "http://b.example/1")
		first, second := w.Next(), w.Next()
		links := frontier.Outcome{Add: []frontier.Entry{{URL: "http://a.example/3", Depth: 1}, {URL: "http://a.example/4", Depth: 2}, {URL: "tel:1"}}}
		refused, err := w.F.DoneContext(context.Background(), first, links)
		require.ErrorAs(t, err, new(*frontier.PriorityError))
		require.Len(t, frontier.EntryErrors(err), 1)
		require.Len(t, refused, 1)
		all := w.F.DoneAll(context.Background(), []frontier.End{{Lease: second, Outcome: links}})
		require.ErrorAs(t, all[0].Err, new(*frontier.PriorityError))
		require.Equal(t, []frontier.Verdict{frontier.EntryKnown, frontier.EntryBad, frontier.EntryBad}, all[0].Verdicts)
		require.Equal(t, "http://a.example/3", w.Next().Entry.URL)
	})
}
