package recrawl_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// live crawls pages for a while.
func live(s *recrawl.Scheduler, pages []recrawl.Page, from, n int) {
	r := rand.New(rand.NewPCG(5, uint64(from)))
	for k := range n {
		now := monday.Add(time.Duration(from+k) * time.Minute)
		i := r.IntN(len(pages))
		p := s.Hint(pages[i], now.Add(-time.Hour), now)
		p, _ = s.Recheck(p, now)
		pages[i], _ = s.Done(p, recrawl.Visit{At: now, Outcome: recrawl.Outcome(r.IntN(5))})
	}
}

func TestARestoredSchedulerGoesOnAsBefore(t *testing.T) {
	for _, o := range []recrawl.Options{{Budget: 1. / 60}, {}} {
		s := scheduler(t, o)
		for h := range uint32(5) {
			require.NoError(t, s.SetHostRate(h, 1./900))
		}
		pages := known(s, 3000, func(i int) uint32 { return uint32(i % 10) })
		for range 300 {
			p, _ := s.Admit(2, 3, monday)
			pages = append(pages, p)
		}
		live(s, pages, 0, 20000)
		data, err := s.MarshalBinary()
		require.NoError(t, err)
		t.Logf("%d bytes", len(data))
		assert.Less(t, len(data), 64<<10)

		restored := scheduler(t, o)
		known(restored, 100, oneHost) // which it forgets
		require.NoError(t, restored.UnmarshalBinary(data))
		is, was := restored.Stats(), s.Stats()
		assert.InEpsilon(t, was.Promised, is.Promised, 1e-9)
		assert.InEpsilon(t, was.Freshness, is.Freshness, 1e-9)
		is.Promised, is.Freshness = was.Promised, was.Freshness // sums in no order
		assert.Equal(t, was, is)
		copied := append([]recrawl.Page(nil), pages...)
		live(s, pages, 20000, 20000)
		live(restored, copied, 20000, 20000)
		for i := range pages {
			require.Equal(t, pages[i], copied[i], "every due time is the same")
		}
		assert.InEpsilon(t, s.Stats().Price, restored.Stats().Price, 1e-9)
	}
}

func TestWithoutASnapshotItIsRebuiltFromThePages(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1. / 60})
	rebuilt := scheduler(t, recrawl.Options{Budget: 1. / 60})
	for h := range uint32(5) {
		require.NoError(t, s.SetHostRate(h, 1./900))
		require.NoError(t, rebuilt.SetHostRate(h, 1./900))
	}
	pages := known(s, 3000, func(i int) uint32 { return uint32(i % 10) })
	for range 3 {
		for i, p := range pages {
			pages[i], _ = s.Done(p, recrawl.Visit{At: monday, Outcome: recrawl.Visited})
		}
	}
	for i := range pages {
		pages[i] = rebuilt.Learn(pages[i])
	}
	require.NoError(t, s.SetBudget(2./60)) // and no corrections
	require.NoError(t, rebuilt.SetBudget(2./60))
	a, b := s.Stats(), rebuilt.Stats()
	assert.Equal(t, a.Pages, b.Pages)
	assert.InEpsilon(t, a.Promised, b.Promised, 0.01)
	assert.InEpsilon(t, a.Price, b.Price, 0.1)
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	require.NoError(t, s.SetHostRate(1, 0.1))
	live(s, known(s, 50, oneHost), 0, 200)
	data, err := s.MarshalBinary()
	require.NoError(t, err)
	before := s.Stats()
	var corrupt *recrawl.CorruptError
	for i := range data {
		bad := append([]byte(nil), data...)
		bad[i] ^= 0x41
		require.ErrorAs(t, s.UnmarshalBinary(bad), &corrupt)
		require.ErrorAs(t, s.UnmarshalBinary(data[:i]), &corrupt)
	}
	assert.Equal(t, before, s.Stats())
}

// What is whole but of another version, or longer than it says, is refused as well.
func TestASnapshotThatDoesNotFitIsRefused(t *testing.T) {
	s := scheduler(t, recrawl.Options{Budget: 1})
	live(s, known(s, 50, oneHost), 0, 200)
	data, err := s.MarshalBinary()
	require.NoError(t, err)
	before := s.Stats()
	body := data[:len(data)-4]
	sealed := func(b []byte) []byte { return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)) }
	var corrupt *recrawl.CorruptError
	for _, version := range []byte{body[0] - 1, body[0] + 1} { // no damage, however its body looks
		for _, body := range [][]byte{body[1:], nil} {
			err := s.UnmarshalBinary(sealed(append([]byte{version}, body...)))
			require.ErrorIs(t, err, recrawl.ErrVersion)
			require.NotErrorAs(t, err, &corrupt)
			require.ErrorContains(t, err, fmt.Sprintf("it has version %d, this program knows %d", version, data[0]))
		}
	}
	require.ErrorAs(t, s.UnmarshalBinary(sealed(append(bytes.Clone(body), 0))), &corrupt)
	assert.Contains(t, corrupt.Reason, "follows its end")
	require.ErrorAs(t, s.UnmarshalBinary(sealed(bytes.Clone(body[:len(body)-9]))), &corrupt)
	assert.Equal(t, before, s.Stats(), "it is as it was")
	require.NoError(t, s.UnmarshalBinary(sealed(bytes.Clone(body))))
}
