package serve

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

// tokensOf are tokens t-NAME of clients with roles: "crawl bot-1", and so on.
func tokensOf(t *testing.T, lines ...string) *Tokens {
	var b strings.Builder
	for _, line := range lines {
		role, name, _ := strings.Cut(line, " ")
		fmt.Fprintf(&b, "%s %x %s\n", role, sha256.Sum256([]byte("t-"+name)), name)
	}
	tokens, err := ReadTokens(strings.NewReader(b.String()))
	require.NoError(t, err)
	return tokens
}

// An operator sees which client has what, and ends it: one lease, those of a client, those of a host.
func TestOperatorsEndLeases(t *testing.T) {
	x := serve(t, Options{Tokens: tokensOf(t, "crawl bot-1", "crawl bot-2", "operate op")})
	op := []string{"Authorization", "Bearer t-op"}
	x.ok("POST", "/v1/urls", `[{"url":"http://a.example/1"},{"url":"http://a.example/2"},{"url":"http://b.example/"},{"url":"http://sub.c.example/","crawl":"news"},{"url":"http://d.example/"}]`, op...)
	take := func(bot, body string) (ids []string) {
		t.Helper()
		for _, l := range x.ok("POST", "/v1/leases", body, "Authorization", "Bearer t-"+bot)["leases"].([]any) {
			ids = append(ids, l.(map[string]any)["lease"].(string))
		}
		return ids
	}
	list := func(query string) (hosts []string) {
		t.Helper()
		for _, l := range x.ok("GET", "/v1/leases"+query, "", op...)["leases"].([]any) {
			hosts = append(hosts, l.(map[string]any)["client"].(string)+" "+l.(map[string]any)["host"].(string))
		}
		return hosts
	}
	first := take("bot-1", `{"host":"a.example","per_host":2}`)
	require.Len(t, first, 2)
	take("bot-2", `{"host":"b.example"}`)
	take("bot-2", `{"crawls":["news"]}`)
	contact := x.ok("POST", "/v1/hosts/d.example/contact", `{"wait_s":9,"lease_s":60}`, "Authorization", "Bearer t-bot-1")
	assert.Equal(t, []string{"bot-1 a.example", "bot-1 a.example", "bot-2 b.example", "bot-2 sub.c.example", "bot-1 d.example"}, list(""))
	assert.Equal(t, []string{"bot-1 a.example", "bot-1 a.example", "bot-1 d.example"}, list("?client=bot-1"))
	clients := x.s.Clients()
	require.Len(t, clients, 2)
	assert.Equal(t, []any{"bot-1", 3, "bot-2", 2}, []any{clients[0].Client, clients[0].Leases, clients[1].Client, clients[1].Leases})
	crawls, total := x.s.Crawls(1)
	require.Len(t, crawls, 1)
	assert.Equal(t, []any{"DEFAULT", int64(4), 2}, []any{crawls[0].Name, crawls[0].Leased + crawls[0].Waiting, total})
	assert.Equal(t, []string{"bot-2 sub.c.example"}, list("?scope=*.c.example"))
	assert.Equal(t, []string{"bot-1 a.example"}, list("?n=1"))
	m := x.ok("GET", "/v1/leases?scope=*.c.example", "", op...)["leases"].([]any)[0].(map[string]any)
	assert.Equal(t, "http://sub.c.example/", m["url"])
	assert.Equal(t, "news", m["crawl"])
	since, err := time.Parse(time.RFC3339Nano, m["since"].(string))
	require.NoError(t, err)
	until, err := time.Parse(time.RFC3339Nano, m["until"].(string))
	require.NoError(t, err)
	assert.Equal(t, 30*time.Second, until.Sub(since).Round(time.Millisecond))

	for _, path := range []string{"/v1/leases", "/v1/stream", "/v1/hosts/z.example/contact", "/v1/leases/" + first[0] + "/extend"} {
		require.Contains(t, x.problem(400, "bad-request", "POST", path, `{"lease_s":3601}`, op...), "-max-lease")
		require.Contains(t, x.problem(400, "bad-request", "POST", path, `{"lease_s":-1}`, op...), "lease_s is -1; want 0 to 3600")
	}
	x.problem(403, "forbidden", "GET", "/v1/leases", "", "Authorization", "Bearer t-bot-1")
	x.problem(403, "forbidden", "DELETE", "/v1/leases/"+first[0], "", "Authorization", "Bearer t-bot-2")
	x.problem(400, "bad-request", "DELETE", "/v1/leases", "", op...)
	assert.EqualValues(t, 1, x.ok("DELETE", "/v1/leases/"+first[0], "", op...)["ended"])
	x.problem(409, "not-leased", "DELETE", "/v1/leases/"+first[0], "", op...)
	assert.EqualValues(t, 0, x.ok("DELETE", "/v1/leases?client=bot-2&scope=a.example", "", op...)["ended"])
	assert.EqualValues(t, 2, x.ok("DELETE", "/v1/leases?client=bot-2", "", op...)["ended"])
	assert.Equal(t, []string{"bot-1 a.example", "bot-1 d.example"}, list(""))
	x.problem(409, "not-leased", "POST", "/v1/leases/"+first[0]+"/done", `{}`, "Authorization", "Bearer t-bot-1")
	x.ok("POST", "/v1/leases/"+contact["lease"].(string)+"/done", `{}`, "Authorization", "Bearer t-bot-1")
	assert.Equal(t, []string{"bot-1 a.example"}, list(""))
	said := x.ok("POST", "/v1/do", `{"do":"end-leases","scope":"*"}`, op...)["said"]
	assert.Contains(t, said, "1 lease of * ended")
	assert.Empty(t, list(""))
	assert.Zero(t, x.s.Frontier().Stats().Leased)
	assert.EqualValues(t, 5, x.s.Frontier().Stats().Waiting)
	x.problem(409, "conflict", "POST", "/v1/do", `{"do":"end-leases","lease":"`+first[0]+`"}`, op...)
	x.problem(400, "bad-request", "POST", "/v1/do", `{"do":"pause","scope":"*","client":"bot-1"}`, op...)
}

// The client may be fetching still: its host gets the pause of a contact that ends now, and the URL comes
// again with the same attempt.
func TestALeaseThatAnOperatorEndsIsAContact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, "")
		leases, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example"})
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		n, err := x.EndLeases(console.LeaseQuery{Client: "bot"})
		require.NoError(t, err)
		assert.Equal(t, 1, n)
		began := time.Now()
		again, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", Wait: time.Minute})
		require.NoError(t, err)
		assert.Equal(t, gap, time.Since(began))
		assert.Equal(t, leases[0].Entry.URL, again[0].Entry.URL)
		assert.Equal(t, 1, again[0].Attempt)
	})
}

// What a server that was killed had handed out is in the list of the next one, and ends like any lease.
func TestOperatorsEndLeasesOfAnEarlierServer(t *testing.T) {
	for _, one := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			x := born(t, t.TempDir()+"/contacts")
			leases, err := x.Take(t.Context(), "bot \"1\"", frontier.TakeOptions{Host: "a.example", PerHost: 2, Lease: 30 * 24 * time.Hour})
			require.NoError(t, err)
			y := x.killed()
			synctest.Wait()
			list := y.Leases(console.LeaseQuery{}).Leases
			require.Len(t, list, 2)
			for i, l := range list {
				assert.True(t, l.Earlier)
				assert.Equal(t, []string{"bot \"1\"", "a.example"}, []string{l.Client, l.Host})
				assert.Contains(t, []string{leases[0].Entry.URL, leases[1].Entry.URL}, l.URL)
				assert.Equal(t, leases[0].LeasedAt.UnixMilli(), list[i].Since.UnixMilli())
			}
			time.Sleep(time.Hour)
			assert.NotContains(t, y.hosts(frontier.TakeOptions{}), "a.example")
			if one {
				for _, l := range leases {
					n, err := y.EndLeases(console.LeaseQuery{Lease: l.ID()})
					require.NoError(t, err)
					assert.Equal(t, 1, n)
				}
			} else {
				n, err := y.EndLeases(console.LeaseQuery{Scope: scope.Host("a.example")})
				require.NoError(t, err)
				assert.Equal(t, 2, n)
			}
			assert.Empty(t, y.Leases(console.LeaseQuery{Client: "bot \"1\""}).Leases)
			began := time.Now()
			_, err = y.Take(t.Context(), "bot", frontier.TakeOptions{Host: "a.example", Wait: time.Minute})
			require.NoError(t, err)
			assert.Equal(t, gap, time.Since(began), "as after a contact")
			z := y.killed()
			synctest.Wait()
			assert.Len(t, z.Leases(console.LeaseQuery{Scope: scope.Host("a.example")}).Leases, 1, "the last one")
		})
	}
}

// A server without a file of contacts lists leases, too, and forgets those that expire.
func TestLeasesThatExpireAreNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := born(t, "")
		_, err := x.Take(t.Context(), "bot", frontier.TakeOptions{Hosts: 3})
		require.NoError(t, err)
		assert.Equal(t, 3, x.Leases(console.LeaseQuery{N: 1}).Total)
		time.Sleep(term + time.Second)
		assert.Zero(t, x.Leases(console.LeaseQuery{}).Total)
		n, err := x.EndLeases(console.LeaseQuery{})
		require.NoError(t, err)
		assert.Zero(t, n)
		x.contacts.swept = -1
		x.contacts.mu.Lock()
		for i := range 2000 {
			x.contacts.out[strings.Repeat("x", i)] = contact{}
		}
		x.contacts.sweepLocked(time.Now())
		assert.Empty(t, x.contacts.out)
		x.contacts.mu.Unlock()
	})
}
