package conformance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/seed-7440039f/frontier/test/harness"
)

// longLinks are outlinks of 8 kB each.
func longLinks(n int) (all []frontier.Entry) {
	long := strings.Repeat("x", 8000)
	for i := range n {
		all = append(all, frontier.Entry{URL: fmt.Sprintf("http://b.example/%s%d", long, i), Depth: 1})
	}
	return all
}

// A completion with 16 MB of outlinks is committed in parts, and ends with the last of them. A part
// that cannot be committed leaves its URL waiting, as if the whole had failed.
func TestManyOutlinksAreCommittedInParts(t *testing.T) {
	const n = 2000
	for _, all := range []bool{false, true} {
		t.Run(fmt.Sprintf("DoneAll=%v", all), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, h := harness.HookedWorld(t, frontier.Options{Delay: frontier.FixedDelay(0)})
				_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
				require.NoError(t, err)
				most, parts, fails, ended := 0, 0, true, false
				h.Set(func(b *storage.Batch) error {
					if fails && parts == 3 {
						return harness.ErrDisk
					}
					size := 0
					for _, a := range b.Admit {
						size += len(a.Body)
					}
					if most = max(most, size); size > 0 {
						parts++
						ended = len(b.Finish) > 0
					}
					return nil
				}, nil)
				end := func() error {
					l, err := w.F.Next(t.Context())
					require.NoError(t, err)
					require.True(t, l.Entry.URL == "http://a.example/")
					out := frontier.Outcome{Add: longLinks(n)}
					for i := range out.Add {
						out.Add[i].NotBefore = l.LeasedAt.Add(time.Hour) // the page comes first
					}
					out.Add[n-1].URL = "mailto:x"
					if !all {
						refused, err := w.F.DoneContext(t.Context(), l, out)
						if err == nil {
							require.Len(t, refused, 1)
							require.Equal(t, n-1, refused[0].Index)
						}
						return err
					}
					done := w.F.DoneAll(t.Context(), []frontier.End{{Lease: l, Outcome: out}})[0]
					if done.Err != nil {
						require.Nil(t, done.Verdicts)
						return done.Err
					}
					require.Equal(t, frontier.EntryNew, done.Verdicts[n-2])
					require.Equal(t, frontier.EntryKnown, done.Verdicts[0], "of the first try")
					require.Equal(t, frontier.EntryBad, done.Verdicts[n-1])
					return nil
				}
				require.True(t, errors.Is(end(), harness.ErrDisk))
				require.EqualValues(t, 0, w.F.Stats().Leased)
				fails = false
				require.NoError(t, end())
				require.Greater(t, parts, 10)
				require.True(t, ended, "with the last part")
				require.Less(t, most, 2<<20, "bytes in one commit")
				s := w.F.Stats()
				require.EqualValues(t, n-1, s.Scheduled)
				require.EqualValues(t, 1, s.Refused)
				require.EqualValues(t, 1, s.Done[frontier.Visited])
			})
		})
	}
}

// Without a Spill, the outlinks that find room are admitted, and the others are reported.
func TestManyOutlinksFillTheMemory(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{MemoryBudget: 16 << 20, Delay: frontier.FixedDelay(0)})
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	require.NoError(t, err)
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	err = f.Done(l, frontier.Outcome{Add: longLinks(4000)})
	require.ErrorIs(t, err, frontier.ErrFull)
	s := f.Stats()
	require.EqualValues(t, 1, s.Done[frontier.Visited])
	require.Greater(t, s.Waiting, int64(500))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}
