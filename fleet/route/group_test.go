package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/serve"
)

const address = "192.0.2.1" // which hosts have in common

// beside is a second router before the same parts, as another machine has.
func (x *routed) beside() *routed {
	r, err := New(x.r.o)
	require.NoError(x.t, err)
	front := httptest.NewServer(r.Handler())
	x.t.Cleanup(func() {
		assert.NoError(x.t, r.Close())
		front.Close()
	})
	y := *x
	y.r, y.base = r, front.URL
	return &y
}

// permitLeases are the leases of the group's host, at its part.
func (x *routed) permitLeases(group string) (all []map[string]any) {
	host := hostOfGroup(group)
	for _, l := range x.ok("GET", "/v1/leases", "")["leases"].([]any) {
		if m := l.(map[string]any); m["host"] == host {
			all = append(all, m)
		}
	}
	return all
}

// one takes a lease of the n-th host of a part, with a new URL.
func (x *routed) one(part string, n int) string {
	x.t.Helper()
	host := x.host(part, n)
	x.ok("POST", "/v1/urls", fmt.Sprintf("http://%s/%d", host, time.Now().UnixNano()), "Content-Type", "text/plain")
	for _, l := range x.leases(`{"lease_s":60,"wait_s":10,"host":"` + host + `"}`) {
		return l["lease"].(string)
	}
	require.Fail(x.t, "no lease")
	return ""
}

func (x *routed) join(id, group string) string {
	x.t.Helper()
	l := x.ok("POST", "/v1/leases/"+id+"/join", `{"group":"`+group+`"}`)
	assert.Equal(x.t, group, l["group"])
	return l["lease"].(string)
}

// Hosts with one address are never contacted at once, nor before the address's delay is over, whichever
// part they are of, and whichever router lends them.
func TestAGroupOfManyParts(t *testing.T) {
	const delay = 30 * time.Millisecond
	x := routeAt(t, delay, serve.Options{}, "a", "b", "c")
	routers := []*routed{x, x.beside()}
	c := x.client(client.Options{})
	var urls []frontier.Entry
	for _, part := range []string{"a", "b", "c"} {
		for host := range 4 {
			for page := range 3 {
				urls = append(urls, frontier.Entry{URL: fmt.Sprintf("http://%s/%d", x.host(part, host), page)})
			}
		}
	}
	_, err := c.Add(t.Context(), urls...)
	require.NoError(t, err)
	type contact struct{ from, to time.Time }
	var mu sync.Mutex
	var contacts []contact
	refused := 0
	seen := map[string]int{}
	ctx, over := context.WithCancel(t.Context())
	defer over()
	var all sync.WaitGroup
	for worker := range 6 {
		c := routers[worker%2].client(client.Options{})
		all.Go(func() {
			for {
				l, err := c.Next(ctx)
				if errors.Is(err, context.Canceled) || !assert.NoError(t, err) {
					return
				}
				err = c.Join(&l, address)
				if errors.Is(err, frontier.ErrGroupBusy) {
					assert.NoError(t, c.Done(l, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
					mu.Lock()
					refused++
					mu.Unlock()
					continue
				}
				if !assert.NoError(t, err) {
					return
				}
				at := contact{from: time.Now()}
				time.Sleep(5 * time.Millisecond)
				at.to = time.Now()
				mu.Lock()
				contacts = append(contacts, at)
				seen[l.Entry.URL]++
				done := len(seen) == len(urls)
				mu.Unlock()
				assert.NoError(t, c.Done(l, frontier.Outcome{Duration: time.Since(at.from)}))
				if done {
					over()
				}
			}
		})
	}
	all.Wait()
	assert.Len(t, seen, len(urls))
	assert.Len(t, contacts, len(urls))
	slices.SortFunc(contacts, func(a, b contact) int { return cmp.Compare(a.from.UnixNano(), b.from.UnixNano()) })
	for i := 1; i < len(contacts); i++ {
		assert.GreaterOrEqual(t, contacts[i].from.Sub(contacts[i-1].to), delay, "contact %d", i)
	}
	assert.Zero(t, x.leased())
	t.Logf("%d contacts, %d times refused, in %v", len(contacts), refused, contacts[len(contacts)-1].to.Sub(contacts[0].from))
	assert.Less(t, refused, 4*len(contacts))
}

// A permit lives and ends with its lease, at each router.
func TestPermits(t *testing.T) {
	x := route(t, "a", "b", "c")
	y := x.beside()
	for i, part := range []string{"a", "b", "c"} {
		old := x.one(part, i)
		id := x.join(old, address)
		assert.True(t, strings.HasPrefix(id, old+permitMark), id)
		assert.Equal(t, id, x.join(id, address), "it has joined")
		assert.Equal(t, id, y.join(id, address))
		assert.Equal(t, id, x.join(old, address), "also by its first ID")
		require.Len(t, x.permitLeases(address), 1)
		assert.InDelta(t, 60, x.lasts().Seconds(), 5)
		assert.Equal(t, id, y.ok("POST", "/v1/leases/"+id+"/extend", `{"lease_s":200}`)["lease"])
		assert.InDelta(t, 200, x.lasts().Seconds(), 5)
		assert.Equal(t, id, x.ok("POST", "/v1/leases/"+old+"/extend", `{"lease_s":100}`)["lease"])
		assert.InDelta(t, 100, x.lasts().Seconds(), 5)
		assert.Equal(t, id, y.ok("GET", "/v1/leases/"+id, "")["lease"])

		other := y.one("a", 10+i)
		assert.Contains(t, y.problem(422, "group-busy", "POST", "/v1/leases/"+other+"/join", `{"group":"`+address+`"}`), "give the lease back")
		both := y.join(other, "2001:db8::/64")
		contact := x.ok("POST", "/v1/leases/"+id+"/handback", `{}`)["lease"].(string)
		assert.NotEqual(t, id, contact)
		require.Len(t, x.permitLeases(address), 1, "the contact has it")
		y.ok("POST", "/v1/leases/"+contact+"/done", `{"duration_s":0.1}`)
		require.Empty(t, x.permitLeases(address))
		both = x.join(both, address)
		assert.Equal(t, 2, strings.Count(both, permitMark), "two addresses of one host")
		x.ok("POST", "/v1/leases/"+both+"/done", `{}`)
		require.Empty(t, x.permitLeases(address))
		require.Empty(t, x.permitLeases("2001:db8::/64"))

		id = x.one(part, i)
		x.join(id, address)
		code, text := x.ask("POST", "/v1/done", `{"lease":"`+id+`"}`+"\n", ndjson...)
		assert.Equal(t, 200, code)
		assert.NotContains(t, text, "error")
		require.Empty(t, x.permitLeases(address), "a client that knows only the first ID")
		x.r.groups.mu.Lock()
		assert.NotContains(t, x.r.groups.leases, id)
		x.r.groups.mu.Unlock()

		id = x.join(x.one(part, i), address)
		y.ok("DELETE", "/v1/leases/"+id, "")
		require.Empty(t, x.permitLeases(address))

		id = x.join(x.one(part, i), address) // its permit ends before it
		x.ok("DELETE", "/v1/leases/"+x.permitLeases(address)[0]["lease"].(string), "")
		x.problem(409, "not-leased", "POST", "/v1/leases/"+id+"/extend", `{"lease_s":60}`)
		x.ok("POST", "/v1/leases/"+id+"/done", `{}`)
	}
}

// A contact that did not take place costs the group nothing. One that did starts its delay.
func TestTheDelayOfAGroup(t *testing.T) {
	x := routeAt(t, 2*time.Second, serve.Options{}, "a", "b", "c")
	x.ok("POST", "/v1/leases/"+x.join(x.one("a", 0), address)+"/done", `{"result":"requeue","uncontacted":true}`)
	x.ok("POST", "/v1/leases/"+x.join(x.one("b", 0), address)+"/done", `{"duration_s":0.1}`)
	ended := time.Now()
	id := x.one("c", 0)
	began := time.Now()
	x.problem(422, "group-busy", "POST", "/v1/leases/"+id+"/join", `{"group":"`+address+`"}`)
	assert.Less(t, time.Since(began), 2*time.Second, "it does not wait for long")
	x.ok("POST", "/v1/leases/"+id+"/done", `{"result":"requeue","uncontacted":true}`)
	require.Empty(t, x.leases(`{"host":"`+x.host("c", 0)+`"}`), "its host waits, too")
	for _, l := range x.leases(`{"wait_s":10,"host":"` + x.host("c", 0) + `"}`) {
		id = x.join(l["lease"].(string), address)
	}
	assert.GreaterOrEqual(t, time.Since(ended), 2*time.Second)
	x.ok("POST", "/v1/leases/"+id+"/done", `{}`)
}

func TestJoinsThatFail(t *testing.T) {
	x := route(t, "a", "b", "c")
	id := x.one("a", 0)
	join := "/v1/leases/" + id + "/join"
	assert.Contains(t, x.problem(400, "bad-request", "POST", join, `{}`), "group has 0 bytes; want 1 to 255")
	x.problem(400, "bad-request", "POST", join, `{"group":"`+strings.Repeat("x", 256)+`"}`)
	assert.Contains(t, x.problem(400, "bad-request", "POST", join, `{"grupp":"x"}`), "grupp")
	x.problem(409, "not-leased", "POST", "/v1/leases/AAAAAAAAAAAAAAAA"+x.r.parts[0].tail+"/join", `{"group":"x"}`)
	x.problem(409, "not-leased", "POST", "/v1/leases/AAAAAAAAAAAAAAAA/join", `{"group":"x"}`)
	for _, name := range []string{"::/64", "Ü", "a.-", strings.Repeat("x", 255), "xn--", "A", "group of ours/1"} {
		id = x.join(id, name)
		require.Len(t, x.permitLeases(name), 1)
	}
	home := x.r.home(hostOfGroup("later")).name
	at := slices.DeleteFunc([]string{"a", "b", "c"}, func(part string) bool { return part == home })[0]
	id = x.one(at, 1)
	x.parts[home].down.Store(true)
	x.problem(503, "busy", "POST", "/v1/leases/"+id+"/join", `{"group":"later"}`)
	x.parts[home].down.Store(false)
	id = x.join(id, "later")
	x.parts[home].down.Store(true)
	x.ok("POST", "/v1/leases/"+id+"/done", `{}`) // the permit ends at its deadline
	x.parts[home].down.Store(false)
	require.Len(t, x.permitLeases("later"), 1)
}
