package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

const (
	gap  = 2 * time.Second
	term = time.Minute
)

// life is a Service between two starts.
type life struct {
	*Service
	t *testing.T
}

// born opens a frontier with URLs of three hosts, and serves it.
func born(t *testing.T, contacts string) *life { return bornWith(t, Options{Contacts: contacts}) }

func bornWith(t *testing.T, o Options) *life { return bornAfter(t, o, func(*frontier.Frontier) {}) }

// bornAfter is bornWith after something has happened to the frontier.
func bornAfter(t *testing.T, o Options, before func(*frontier.Frontier)) *life {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{Delay: frontier.FixedDelay(gap), LeaseTime: term}))
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/1"}, frontier.Entry{URL: "http://b.example/1"}, frontier.Entry{URL: "http://c.example/1"},
		frontier.Entry{URL: "http://a.example/2"}, frontier.Entry{URL: "http://b.example/2"}, frontier.Entry{URL: "http://c.example/2"})
	require.NoError(t, err)
	before(f)
	s, err := New(f, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
	})
	return &life{s, t}
}

// killed is the next life, after this one was killed. Its frontier has forgotten all.
func (x *life) killed() *life { return x.killedBefore(func(*frontier.Frontier) {}) }

func (x *life) killedBefore(before func(*frontier.Frontier)) *life {
	b, err := os.ReadFile(x.contacts.path)
	require.NoError(x.t, err)
	path := x.contacts.path + "+"
	require.NoError(x.t, os.WriteFile(path, b, 0o600))
	return bornAfter(x.t, Options{Contacts: path}, before)
}

// hosts are those that have a URL to hand out now.
func (x *life) hosts(o frontier.TakeOptions) (hosts []string) {
	x.t.Helper()
	o.Hosts = 9
	leases, err := x.Take(x.t.Context(), "bot", o)
	if err != nil {
		require.ErrorIs(x.t, err, frontier.ErrNotDue)
	}
	for _, l := range leases {
		hosts = append(hosts, l.Host)
	}
	return hosts
}

func (x *life) ask(path, body string) int {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Host = "localhost"
	x.Handler().ServeHTTP(w, r)
	return w.Code
}

// A client that fetches while the server is killed is alone with its host until it says that it
// has finished, or until its lease would have ended.
func TestHostsOfAnEarlierLifeAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Hosts: 3})
		require.NoError(t, err)
		require.Len(t, leases, 3)
		require.NoError(t, x.Done(leases[1], frontier.Outcome{}))
		y := x.killed()
		start := time.Now()
		require.Equal(t, []string{"b.example"}, y.hosts(frontier.TakeOptions{}), "its contact has ended")
		time.Sleep(10 * time.Second)
		require.NotContains(t, y.hosts(frontier.TakeOptions{}), "a.example")

		require.Equal(t, http.StatusConflict, y.ask("/v1/leases/"+leases[0].ID()+"/done", `{"duration_s":12}`))
		require.Empty(t, y.hosts(frontier.TakeOptions{Host: "a.example"}), "it is left alone for its delay")
		time.Sleep(gap)
		require.Equal(t, []string{"a.example"}, y.hosts(frontier.TakeOptions{Host: "a.example"}))

		require.Equal(t, []string{"c.example"}, y.hosts(frontier.TakeOptions{Host: "c.example", Wait: time.Hour}))
		require.WithinDuration(t, start.Add(term+gap), time.Now(), 20*time.Millisecond)
	})
}

func TestAKilledServerForgetsNothingInASecondKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Hosts: 3})
		require.NoError(t, err)
		y := x.killed()
		y.Late(0, leases[0].Entry.URL, frontier.Outcome{})
		require.Equal(t, http.StatusConflict, y.ask("/v1/leases/"+leases[1].ID()+"/extend", `{"lease_s":300}`))
		start := time.Now()
		z := y.killed()
		require.Equal(t, []string{"a.example"}, z.hosts(frontier.TakeOptions{}))
		require.Equal(t, []string{"c.example"}, z.hosts(frontier.TakeOptions{Wait: 2 * time.Hour, Crawls: []uint32{0}, Host: "c.example"}))
		require.WithinDuration(t, start.Add(term+gap), time.Now(), 20*time.Millisecond)
		require.Equal(t, []string{"b.example"}, z.hosts(frontier.TakeOptions{Wait: 2 * time.Hour, Host: "b.example"}), "the client goes on")
		require.WithinDuration(t, start.Add(5*time.Minute+gap), time.Now(), 20*time.Millisecond)
	})
}

// The leases of a bundle are one contact, which ends with the last of them.
func TestABundleOfAnEarlierLifeEndsWithItsLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", PerHost: 2})
		require.NoError(t, err)
		require.Len(t, leases, 2)
		y := x.killed()
		a := frontier.TakeOptions{Host: "a.example"}
		y.Late(0, leases[0].Entry.URL, frontier.Outcome{})
		y.Late(0, leases[0].Entry.URL, frontier.Outcome{})
		time.Sleep(2 * gap)
		require.Empty(t, y.hosts(a))
		y.Late(0, leases[1].Entry.URL, frontier.Outcome{RetryAfter: 10 * time.Second})
		time.Sleep(9 * time.Second)
		require.Empty(t, y.hosts(a))
		time.Sleep(time.Second)
		require.NotEmpty(t, y.hosts(a))
	})
}

// A lease of a bundle that is extended for a moment does not end the contact of the others.
func TestABundleIsKeptForItsLongestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{PerHost: 2, Host: "a.example", Lease: 10 * time.Minute})
		require.NoError(t, err)
		require.Len(t, leases, 2)
		y := x.killed()
		start := time.Now()
		require.Equal(t, http.StatusConflict, y.ask("/v1/leases/"+leases[0].ID()+"/extend", `{"lease_s":5}`))
		require.Equal(t, []string{"a.example"}, y.hosts(frontier.TakeOptions{Host: "a.example", Wait: time.Hour}))
		require.WithinDuration(t, start.Add(10*time.Minute+gap), time.Now(), 20*time.Millisecond)
	})
}

// The file stays small, and has what is out.
func TestTheFileOfContactsIsMadeShorter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "contacts")
		x := born(t, path)
		kept, err := x.Take(t.Context(), "bot", frontier.TakeOptions{})
		require.NoError(t, err)
		for range 25_000 {
			require.NoError(t, x.contacts.began(t.Context(), "bot", frontier.Lease{Host: "z.example"}))
			x.contacts.ended("") // the ID of a lease that is none
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(rewriteAt+100))
		y := x.killed()
		require.NotContains(t, y.hosts(frontier.TakeOptions{}), kept[0].Host)
	})
}

// A line that cannot be read is skipped, and the log says so.
func TestAFileOfContactsThatIsDamaged(t *testing.T) {
	f, err := frontier.Open(t.Context(), Frontier(frontier.Options{}))
	require.NoError(t, err)
	defer f.Close()
	path := filepath.Join(t.TempDir(), "contacts")
	for text, want := range map[string]string{
		"": "", "+half a lin": "", "-AAAA\n": "",
		"nonsense\n": `line 1: "nonsense" is no contact`, "-A\n+A 1 2 3\n": "line 2", "+A x 1 0 B \"c\" \"h\" \"\"\n": "line 1", "+A 1 2 B \"c\"\n": "is no contact",
		"+A 1 1 0 B \"c\" \"h\" \"\n": "line 1", "+A 1 1 0 B \"c\" \"\" \"\"\n": "line 1: host", "\x00\x00\n": "line 1",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var log bytes.Buffer
		s, err := New(f, Options{Contacts: path, Logger: slog.New(slog.NewJSONHandler(&log, nil))})
		require.NoError(t, err, text)
		require.NoError(t, s.Close())
		if want == "" {
			assert.Empty(t, log.String(), text)
		} else {
			var line struct{ Error string }
			require.NoError(t, json.Unmarshal(log.Bytes(), &line), text)
			assert.Contains(t, line.Error, want)
		}
	}
	_, err = New(f, Options{Contacts: filepath.Join(path, "x")})
	require.ErrorContains(t, err, "serve: contacts:")
}

// What cannot be written down is not handed out.
func TestNothingIsHandedOutWithoutTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		require.NoError(t, x.contacts.file.Close())
		_, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Hosts: 3})
		require.ErrorIs(t, err, os.ErrClosed)
		require.Zero(t, x.Frontier().Stats().Leased)
		require.Equal(t, http.StatusInternalServerError, x.ask("/v1/leases", "{}"))
		x.contacts.file = nil
	})
}

// What has expired leaves the file, however it is extended afterwards.
func TestExpiredContactsLeaveTheFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Hosts: 3})
		require.NoError(t, err)
		y := x.killed()
		time.Sleep(2 * term)
		require.NoError(t, y.contacts.rewrite(time.Now()))
		require.Empty(t, y.contacts.out)
		require.Equal(t, http.StatusConflict, y.ask("/v1/leases/"+leases[0].ID()+"/extend", `{"lease_s":300}`))
		require.Len(t, y.killed().hosts(frontier.TakeOptions{}), 3)

		last := frontier.Lease{Deadline: time.Now().Add(time.Second)}
		for i := range 40_000 {
			last.Host = fmt.Sprintf("%d.%s.example", i, strings.Repeat("x", 200))
			require.NoError(t, y.contacts.began(t.Context(), "bot", last))
			time.Sleep(time.Millisecond)
		}
		info, err := os.Stat(y.contacts.path)
		require.NoError(t, err)
		assert.Less(t, info.Size(), int64(2*rewriteAt))
	})
}

// Two contacts of a host are two after the start, also if one call handed them out. A bundle with
// one URL handed back is one.
func TestContactsAreCountedAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := func(x *life) *life {
			require.NoError(t, x.f.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Concurrency = 2 }))
			_, err := x.f.Add(t.Context(), frontier.Entry{URL: "http://a.example/3"}, frontier.Entry{URL: "http://a.example/4"}, frontier.Entry{URL: "http://a.example/5"})
			require.NoError(t, err)
			return x
		}
		for _, each := range []int{1, 2} {
			x := two(born(t, filepath.Join(t.TempDir(), "contacts")))
			a := frontier.TakeOptions{Host: "a.example", PerHost: each}
			var got []frontier.Lease
			for len(got) < 2*each {
				leases, err := x.f.Take(t.Context(), a)
				require.NoError(t, err)
				got = append(got, leases...)
			}
			require.NoError(t, x.contacts.began(t.Context(), "bot", got...))
			y := two(x.killed())
			time.Sleep(4 * gap)
			require.Empty(t, y.hosts(a), "%d of a host", each)
			for _, l := range got[:each] {
				y.Late(0, l.Entry.URL, frontier.Outcome{})
			}
			time.Sleep(gap)
			require.NotEmpty(t, y.hosts(a), "%d of a host", each)
		}

		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", PerHost: 2})
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, x.ask("/v1/leases/"+leases[0].ID()+"/handback", "{}"))
		require.Len(t, x.contacts.out, 2)
		y := x.killed()
		time.Sleep(term)
		require.Equal(t, []string{"a.example"}, y.hosts(frontier.TakeOptions{Host: "a.example", Wait: gap + time.Millisecond}))
	})
}

// A contact that ended before the host could be kept costs no second delay, and one that was extended
// by then is kept.
func TestContactsThatEndBeforeTheHostIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, filepath.Join(t.TempDir(), "contacts"))
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Hosts: 2, Lease: 10 * time.Second})
		require.NoError(t, err)
		b, err := os.ReadFile(x.contacts.path)
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "contacts")
		require.NoError(t, os.WriteFile(path, b, 0o600))
		f, err := frontier.Open(t.Context(), Frontier(frontier.Options{Delay: frontier.FixedDelay(gap)}))
		require.NoError(t, err)
		for _, host := range []string{"a.example", "b.example"} { // they may not be contacted for a while
			l, err := f.Contact(t.Context(), host)
			require.NoError(t, err)
			require.NoError(t, f.Done(l, frontier.Outcome{RetryAfter: 20 * time.Second}))
			_, err = f.Add(t.Context(), frontier.Entry{URL: "http://" + host + "/1"})
			require.NoError(t, err)
		}
		s, err := New(f, Options{Contacts: path})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()); require.NoError(t, f.Close()) }()
		y := &life{s, t}
		require.Equal(t, http.StatusConflict, y.ask("/v1/leases/"+leases[0].ID()+"/done", "{}"))
		require.Equal(t, http.StatusConflict, y.ask("/v1/leases/"+leases[1].ID()+"/extend", `{"lease_s":60}`))
		start := time.Now()
		require.Equal(t, []string{"a.example"}, y.hosts(frontier.TakeOptions{Wait: time.Minute}))
		require.WithinDuration(t, start.Add(20*time.Second), time.Now(), 20*time.Millisecond)
		require.Equal(t, []string{"b.example"}, y.hosts(frontier.TakeOptions{Host: "b.example", Wait: 2 * time.Minute}))
		require.WithinDuration(t, start.Add(time.Minute+gap), time.Now(), 20*time.Millisecond)
	})
}

// A file that cannot be made shorter holds nothing up, and hosts that no frontier knows keep no server
// from starting.
func TestAFileOfContactsThatStaysLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "in")
		require.NoError(t, os.Mkdir(dir, 0o700))
		path := filepath.Join(dir, "contacts")
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".contacts-1"), nil, 0o600))
		require.NoError(t, os.WriteFile(path, []byte("+A 9999999999999 000000000000000000000000 A \"\"\n"), 0o600))
		x := born(t, path)
		require.NoFileExists(t, filepath.Join(dir, ".contacts-1"))
		require.NoError(t, os.Rename(dir, dir+"2")) // the open file goes along
		x.contacts.size = rewriteAt
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, leases)
		x.contacts.broken = nil // it has no file any more
	})
}
