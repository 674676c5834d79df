// This file tests what is kept over restarts, and bad options.

package incremental

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/lab/drift"
	"github.com/seed-7440039f/frontier/recrawl"
)

// learned is a crawl that ran for a while over pages with different rates.
func learned(t *testing.T, dir string, o Options) *crawl {
	w := newWeb()
	var links []string
	for i := range 60 {
		u := fmt.Sprintf("http://h%d.example/%d", i%7, i)
		links = append(links, u)
		w.pages[u] = func(at time.Duration, _ int, _ http.Header) answer {
			return text("edition %s", word(int(at/(time.Duration(1+i)*day))))
		}
	}
	w.pages["http://a.example/"] = steady(links...)
	o.Dir, o.Schedule, o.SaveEvery = dir, schedule(20), cmp.Or(o.SaveEvery, 10*day)
	x := begin(t, w, o)
	x.run(60*day, "http://a.example/")
	return x
}

// A copy made during the crawl knows the hosts' keys and what was learned, and its accounts match
// the frontier with which it is opened.
func TestCopyTo(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		dir := t.TempDir()
		x := learned(t, filepath.Join(dir, "recrawl"), Options{})
		to := filepath.Join(dir, "copy")
		require.NoError(t, x.r.CopyTo(t.Context(), to))
		require.ErrorIs(t, x.r.CopyTo(t.Context(), to), fs.ErrExist)
		again, err := Open(Options{Dir: to, Schedule: schedule(20)})
		require.NoError(t, err)
		assert.True(t, again.unclean)
		assert.Equal(t, x.r.plans.HostNumber("a.example"), again.plans.HostNumber("a.example"))
		want := x.r.Report()
		require.NoError(t, again.Attach(t.Context(), x.f))
		got := again.Report()
		assert.Equal(t, want.Counts, got.Counts)
		assert.Equal(t, want.Schedule.Pages, got.Schedule.Pages)
		assert.InEpsilon(t, want.Schedule.Price, got.Schedule.Price, 1e-6)
		require.NoError(t, again.Close())
	})
	r, err := Open(Options{})
	require.NoError(t, err)
	require.ErrorIs(t, r.CopyTo(t.Context(), filepath.Join(t.TempDir(), "copy")), errors.ErrUnsupported)
}

// After a crash the accounts match the URLs, and everything else is as last saved; after a clean
// end everything is.
func TestResume(t *testing.T) {
	for _, clean := range []bool{false, true} {
		inVirtualTime(t, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "recrawl")
			x := learned(t, dir, Options{})
			want := x.r.Report()
			require.Greater(t, want.Schedule.Pages, int64(50))
			if clean {
				require.NoError(t, x.r.Close())
			}
			again, err := Open(Options{Dir: dir, Schedule: schedule(20), SaveEvery: 10 * day})
			require.NoError(t, err)
			assert.Equal(t, clean, !again.unclean)
			assert.Equal(t, x.r.plans.HostNumber("a.example"), again.plans.HostNumber("a.example"))
			require.NoError(t, again.Attach(t.Context(), x.f))
			got := again.Report()
			assert.Equal(t, want.Schedule.Pages, got.Schedule.Pages)
			assert.Equal(t, want.Schedule.NewPages, got.Schedule.NewPages)
			assert.InEpsilon(t, want.Schedule.Promised, got.Schedule.Promised, 1e-6)
			if clean {
				assert.Equal(t, want.Schedule, got.Schedule)
				assert.Equal(t, want.Counts, got.Counts)
			} else { // of up to ten days ago
				assert.InEpsilon(t, want.Schedule.Price, got.Schedule.Price, 0.2)
				assert.InDelta(t, want.Visits, got.Visits, 250)
			}
			x.r = again // and the crawl continues
			x.run(30 * day)
			assert.Greater(t, x.r.Report().Visits, got.Visits+200)
			require.NoError(t, again.Close())
			require.NoError(t, again.Close())
		})
	}
}

// A crawl that was killed early continues with its price. If only its beginning was saved, it finds
// the price from the pages, instead of continuing with that of an empty crawl.
func TestKilledYoung(t *testing.T) {
	for what, within := range map[string]float64{"some visits": 0.01, "its beginning": 0.2} {
		inVirtualTime(t, func(t *testing.T) {
			dir := t.TempDir()
			x := learned(t, dir, Options{SaveEvery: 10000 * day})
			want := x.r.Report()
			require.Less(t, want.Visits, int64(earlyVisits))
			if what == "its beginning" {
				begins := t.TempDir()
				_ = begin(t, newWeb(), Options{Dir: begins, Schedule: schedule(20)})
				b, err := os.ReadFile(filepath.Join(begins, stateFile))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(filepath.Join(dir, stateFile), b, 0o600))
			}
			again, err := Open(Options{Dir: dir, Schedule: schedule(20)})
			require.NoError(t, err)
			assert.Equal(t, what == "its beginning", again.Report().Visits == 0)
			require.NoError(t, again.Attach(t.Context(), x.f))
			got := again.Report()
			assert.Equal(t, want.Schedule.Pages, got.Schedule.Pages)
			assert.InEpsilon(t, want.Schedule.Price, got.Schedule.Price, within, what)
			require.NoError(t, again.Close())
		})
	}
}

// Without the state the URLs' rates are there still; damaged state is put aside.
func TestStateLost(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		dir := t.TempDir()
		x := learned(t, dir, Options{})
		require.NoError(t, x.r.Close())
		name := filepath.Join(dir, "state")
		whole, err := os.ReadFile(name)
		require.NoError(t, err)
		for what, spoil := range map[string]func([]byte) []byte{
			"empty":   func([]byte) []byte { return nil },
			"cut":     func(b []byte) []byte { return b[:len(b)/2] },
			"changed": func(b []byte) []byte { return append([]byte(`{"version":1,"schedule":"AAAA"`), '}') },
			"nothing": func(b []byte) []byte { return []byte(`{}`) },
			"missing": nil,
		} {
			aside := filepath.Join(dir, "state.damaged")
			require.NoError(t, errors.Join(os.RemoveAll(aside), os.Remove(name)))
			var b []byte
			if spoil != nil {
				b = spoil(whole)
				require.NoError(t, os.WriteFile(name, b, 0o600))
			}
			again, err := Open(Options{Dir: dir, Schedule: schedule(20), SaveEvery: 10 * day})
			require.NoError(t, err, what)
			require.NoError(t, again.Attach(t.Context(), x.f))
			s := again.Report().Schedule
			assert.Equal(t, x.r.Report().Schedule.Pages, s.Pages, what)
			assert.InEpsilon(t, x.r.Report().Schedule.Price, s.Price, 0.5, "%s: it follows from the pages", what)
			if spoil != nil {
				kept, err := os.ReadFile(aside)
				require.NoError(t, err)
				assert.Equal(t, string(b), string(kept))
			}
			require.NoError(t, again.Close())
		}
	})
}

// What another version wrote is no damage: it is refused and stays as it is.
func TestStateOfAnotherVersion(t *testing.T) {
	dir := t.TempDir()
	inVirtualTime(t, func(t *testing.T) { require.NoError(t, learned(t, dir, Options{}).r.Close()) })
	name := filepath.Join(dir, "state")
	whole, err := os.ReadFile(name)
	require.NoError(t, err)
	for what, other := range map[string]func(s map[string]any, schedule []byte){
		"newer":          func(s map[string]any, _ []byte) { s["version"] = 2 },
		"newer, unlike":  func(s map[string]any, _ []byte) { s["version"], s["schedule"] = 7, map[string]int{"pages": 1} },
		"other schedule": func(s map[string]any, b []byte) { s["schedule"] = b },
	} {
		var was state
		require.NoError(t, json.Unmarshal(whole, &was))
		body := was.Schedule[:len(was.Schedule)-4]
		body[0]-- // an older one, whole
		s := map[string]any{}
		require.NoError(t, json.Unmarshal(whole, &s))
		other(s, binary.BigEndian.AppendUint32(body, crc32.ChecksumIEEE(body)))
		b, err := json.Marshal(s)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(name, b, 0o600))

		_, err = Open(Options{Dir: dir, Schedule: schedule(20)})
		require.ErrorIs(t, err, frontier.ErrVersion, what)
		require.ErrorContains(t, err, name)
		_, _, err = ReadSchedule(dir)
		require.ErrorIs(t, err, frontier.ErrVersion, what)
		var corrupt *recrawl.CorruptError
		require.NotErrorAs(t, err, &corrupt)
		after, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(b), string(after))
		require.NoFileExists(t, filepath.Join(dir, "state.damaged"))
	}
}

func TestBadFolders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	_, err := Open(Options{Dir: file})
	assert.ErrorContains(t, err, "incremental: open")
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "key"), []byte("short"), 0o600))
	_, err = Open(Options{Dir: dir})
	assert.ErrorContains(t, err, "has 5 bytes; want 32")
	dir = t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	_, err = Open(Options{Dir: dir})
	assert.Error(t, err)
}

// Failed writes are reported.
func TestFolderGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "x")
	r, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	assert.ErrorContains(t, r.Close(), "incremental: close")
}

func TestBadOptions(t *testing.T) {
	_, err := Open(Options{MinChange: math.NaN(), SaveEvery: -1})
	assert.ErrorContains(t, err, "MinChange is NaN; want 0 to 1")
	assert.ErrorContains(t, err, "SaveEvery is -1ns; want 0 or at least 1ms")
	_, err = Open(Options{Schedule: recrawl.Options{Budget: math.Inf(1)}})
	assert.ErrorContains(t, err, "Budget is +Inf")
}

// Known pages and others share the hand-outs as it is said.
func TestShares(t *testing.T) {
	for _, share := range []float64{0.2, 0.9} {
		o := Options{Schedule: recrawl.Options{NewShareMax: share}}
		r, err := Open(o)
		require.NoError(t, err)
		var fo frontier.Options
		r.Configure(&fo)
		n := 0
		const all = 10_000
		for range all {
			switch fo.Selector.Select([]int{1, 3, 8}) {
			case 3, 8:
				n++
			}
		}
		assert.InDelta(t, share*all, n, 400) // 8 standard deviations
		assert.Equal(t, 1, fo.Selector.Select([]int{1}))
		assert.Equal(t, 5, fo.Selector.Select([]int{5}))
		assert.Equal(t, Recrawled, fo.Prioritizer.Priority(frontier.Entry{}, frontier.History{Visits: 1}))
		assert.Equal(t, 8, fo.Prioritizer.Priority(frontier.Entry{}, frontier.History{}))
		assert.Equal(t, 2, fo.Prioritizer.Priority(frontier.Entry{Depth: 100}, frontier.History{}))
	}
}

// A host gets a rate if its pages wait for it alone.
func TestHostsThatAreBound(t *testing.T) {
	var h hosts
	now := time.Unix(1e9, 0)
	for range 100 { // late, but the host was left alone for long
		now = now.Add(time.Minute)
		assert.Zero(t, h.watch(1, 2, now.Add(-time.Hour), now, now.Add(time.Second)))
	}
	told := 0.
	for range 100 { // late, and contacted as soon as may be
		now = now.Add(3 * time.Second)
		if rate := h.watch(2, 2, now.Add(-time.Hour), now, now.Add(time.Second)); rate > 0 {
			assert.Zero(t, told, "once")
			told = rate
		}
	}
	assert.Equal(t, 0.5, told)
	for range 100 { // its delay has grown
		now = now.Add(9 * time.Second)
		if rate := h.watch(2, 8, now, now, now.Add(time.Second)); rate > 0 {
			told = rate
		}
	}
	assert.InEpsilon(t, 1./8, told, 0.25)
	for i := range uint32(watchedHosts + 10) {
		h.watch(100+i, 2, time.Time{}, now, now)
	}
	assert.LessOrEqual(t, len(h.seen), watchedHosts)
}

// The saved state of a crawl can be read while it runs, and is not changed.
func TestReadSchedule(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(Options{Dir: dir, Schedule: recrawl.Options{Budget: 20}})
	require.NoError(t, err)
	now := time.Now()
	for range 5 {
		r.schedule.Admit(1, 0, now)
	}
	require.NoError(t, r.Close())
	before, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	s, saved, err := ReadSchedule(dir)
	require.NoError(t, err)
	assert.EqualValues(t, 5, s.Stats().NewPages)
	assert.InDelta(t, 20, s.Stats().Budget, 1e-6)
	assert.False(t, saved.IsZero())
	after, err := os.ReadFile(filepath.Join(dir, stateFile))
	require.NoError(t, err)
	assert.Equal(t, before, after)

	require.NoError(t, os.WriteFile(filepath.Join(dir, stateFile), before[:len(before)/2], 0o600))
	_, _, err = ReadSchedule(dir)
	assert.ErrorContains(t, err, filepath.Join(dir, stateFile))
	_, _, err = ReadSchedule(t.TempDir())
	assert.ErrorIs(t, err, fs.ErrNotExist)
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, names, 2, "the key and the state: nothing is put aside")
}

// A clock that is set back keeps no state from being saved.
func TestStateIsSavedByTheSteadyClock(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	r, err := Open(Options{Dir: dir, Schedule: schedule(20), SaveEvery: time.Minute, Now: func() time.Time { return now }})
	require.NoError(t, err)
	name := filepath.Join(dir, "state")
	now = now.Add(time.Second)
	r.saveNowAndThen(false)
	require.NoFileExists(t, name, "not yet")
	now = drift.Time(now.Add(-8*time.Hour+2*time.Minute), -8*time.Hour)
	r.saveNowAndThen(false)
	require.FileExists(t, name)
	require.NoError(t, r.Close())
}
