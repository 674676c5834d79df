package route

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/serve"
)

// elsewhere is a part that has not the host of the group.
func (x *routed) elsewhere() string {
	for name := range x.parts {
		if name != x.r.home(hostOfGroup(address)).name {
			return name
		}
	}
	panic("there is one part")
}

// lasts is how long the permit lasts.
func (x *routed) lasts() time.Duration {
	until, err := time.Parse(time.RFC3339Nano, x.permitLeases(address)[0]["until"].(string))
	require.NoError(x.t, err)
	return time.Until(until)
}

func (x *routed) busy(part string, n int) {
	x.t.Helper()
	x.problem(422, "group-busy", "POST", "/v1/leases/"+x.one(part, n)+"/join", `{"group":"`+address+`"}`)
}

// pausing is a body that takes its time.
type pausing struct {
	io.ReadCloser
	once sync.Once
}

func (b *pausing) Read(p []byte) (int, error) {
	b.once.Do(func() { time.Sleep(2 * time.Second) })
	return b.ReadCloser.Read(p)
}

// Whatever becomes of a lease's deadline, the permit's is not earlier.
func TestPermitsLastAsLongAsLeases(t *testing.T) {
	x := route(t, "a", "b", "c")
	part, home := x.elsewhere(), x.parts[x.r.home(hostOfGroup(address)).name]
	id := x.one(part, 0)
	var once sync.Once
	home.see = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/contact") {
			once.Do(func() { x.ok("POST", "/v1/leases/"+id+"/extend", `{"lease_s":300}`) })
		}
	}
	id = x.join(id, address)
	assert.Greater(t, x.lasts(), 290*time.Second, "it was extended while it joined")
	x.parts[part].see = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/extend") {
			r.Body = &pausing{ReadCloser: r.Body} // the part is slow, and the lease begins anew only then
		}
	}
	began := time.Now()
	l := x.ok("POST", "/v1/leases/"+id+"/extend", `{"lease_s":4}`)
	deadline := began.Add(time.Duration((l["lease_s"].(float64) + l["sent_s"].(float64)) * float64(time.Second)))
	assert.GreaterOrEqual(t, x.lasts(), time.Until(deadline)-20*time.Millisecond)
	id = x.ok("POST", "/v1/leases/"+id+"/handback", `{}`)["lease"].(string)
	assert.Greater(t, x.lasts(), 25*time.Second, "the contact in its place lasts longer")
	x.busy("b", 1)
	x.ok("POST", "/v1/leases/"+id+"/done", `{}`)
	require.Empty(t, x.permitLeases(address))
}

// A join whose answer is lost is repeated, and its permit stays with the lease.
func TestAJoinIsRepeated(t *testing.T) {
	x := route(t, "a", "b", "c")
	part, home := x.elsewhere(), x.parts[x.r.home(hostOfGroup(address)).name]
	id := x.one(part, 0)
	ctx, cut := context.WithCancel(t.Context())
	var looks atomic.Int32
	x.parts[part].see = func(r *http.Request) {
		if r.Method == "GET" && looks.Add(1) == 2 { // the permit is there
			cut()
			time.Sleep(100 * time.Millisecond)
		}
	}
	gives := make(chan struct{})
	var first sync.Once
	home.see = func(r *http.Request) {
		if r.URL.Path == "/v1/done" {
			first.Do(func() { <-gives })
		}
	}
	q, err := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/leases/"+id+"/join", strings.NewReader(`{"group":"`+address+`"}`))
	require.NoError(t, err)
	_, err = x.http.Do(q)
	require.Error(t, err)
	x.problem(503, "busy", "POST", "/v1/leases/"+id+"/join", `{"group":"`+address+`"}`)
	close(gives)
	require.Eventually(t, func() bool {
		code, _ := x.ask("POST", "/v1/leases/"+id+"/join", `{"group":"`+address+`"}`)
		return code == 200
	}, 5*time.Second, 10*time.Millisecond)
	require.Len(t, x.permitLeases(address), 1)
	x.busy("b", 1)
}

// A permit ends when its lease has, and not before.
func TestPermitsEndWithLeases(t *testing.T) {
	x := routeAt(t, 3*time.Second, serve.Options{}, "a", "b", "c")
	id := x.join(x.one("a", 0), address)
	x.problem(400, "bad-request", "POST", "/v1/leases/"+id+"/done", `{"result":"visited","uncontacted":true}`)
	require.Len(t, x.permitLeases(address), 1, "the end was refused")
	x.ok("POST", "/v1/leases/"+id+"/done", `{"result":"visited"}`)
	require.Empty(t, x.permitLeases(address))
	x.busy("b", 0)

	id = x.one("c", 0)
	x.problem(422, "group-busy", "POST", "/v1/leases/"+id+"/join", `{"group":"`+address+`"}`)
	for range 2 {
		x.ok("POST", "/v1/leases/"+id+"/done", `{"result":"requeue","uncontacted":true}`)
		time.Sleep(10 * time.Millisecond) // the turn comes nearer
	}

	x = route(t, "a", "b", "c")
	id = x.join(x.one("a", 0), address)
	x.ok("DELETE", "/v1/leases/"+x.permitLeases(address)[0]["lease"].(string), "")
	again := x.join(id, address)
	assert.Len(t, again, len(id), "the permit that has ended is not in the ID any more")
	x.ok("POST", "/v1/leases/"+again+"/extend", `{"lease_s":60}`)
	x.ok("POST", "/v1/do", `{"do":"end-leases","lease":"`+again+`"}`)
	require.Empty(t, x.permitLeases(address))

	part := x.elsewhere()
	id = x.join(x.one(part, 1), address)
	ctx, cut := context.WithCancel(t.Context())
	x.parts[part].see = func(r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/handback") {
			cut()
			time.Sleep(200 * time.Millisecond)
		}
	}
	q, err := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/leases/"+id+"/handback", strings.NewReader(`{}`))
	require.NoError(t, err)
	_, err = x.http.Do(q)
	require.Error(t, err)
	require.Eventually(t, func() bool { return len(x.permitLeases(address)) == 0 }, 5*time.Second, 10*time.Millisecond, "no client has the contact")
}

// An ID with more permits than a router gives costs nothing.
func TestIDsWithManyPermits(t *testing.T) {
	x := route(t, "a", "b", "c")
	id := x.one("a", 0)
	for n := range permitsMost {
		id = x.join(id, fmt.Sprint("group", n))
	}
	assert.Contains(t, x.problem(400, "bad-request", "POST", "/v1/leases/"+id+"/join", `{"group":"more"}`), "can join no more")
	asked := x.parts["a"].asked.Load() + x.parts["b"].asked.Load() + x.parts["c"].asked.Load()
	long := id + strings.Repeat(id[strings.LastIndex(id, permitMark):], 9000)
	for _, path := range []string{"/join", "/extend", "/done"} {
		x.problem(400, "bad-request", "POST", "/v1/leases/"+long[:60000]+path, `{"group":"more"}`)
	}
	_, text := x.ask("POST", "/v1/done", `{"lease":"`+long+`","duration_s":1}`+"\n", ndjson...)
	assert.Contains(t, text, "too many groups")
	assert.LessOrEqual(t, x.parts["a"].asked.Load()+x.parts["b"].asked.Load()+x.parts["c"].asked.Load(), asked+3)
	x.ok("POST", "/v1/leases/"+id+"/done", `{}`)
	require.Empty(t, x.permitLeases("group0"))
}

// Hosts of a busy group do not keep the workers of a client from others.
func TestABusyGroupKeepsNoWorkers(t *testing.T) {
	x := routeAt(t, 50*time.Millisecond, serve.Options{}, "a", "b", "c")
	c := x.client(client.Options{})
	var urls []frontier.Entry
	for i := range 200 {
		urls = append(urls, frontier.Entry{URL: fmt.Sprintf("http://%s/busy", x.host([]string{"a", "b", "c"}[i%3], 20+i/3))})
		urls = append(urls, frontier.Entry{URL: fmt.Sprintf("http://%s/%d", x.host("a", i%20), i)})
	}
	_, err := c.Add(t.Context(), urls...)
	require.NoError(t, err)
	holds := x.join(x.one("b", 150), address)
	ctx, over := context.WithTimeout(t.Context(), 20*time.Second)
	defer over()
	var others atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		c := x.client(client.Options{})
		all.Go(func() {
			for {
				l, err := c.Next(ctx)
				if err != nil {
					return
				}
				o := frontier.Outcome{}
				if strings.HasSuffix(l.Entry.URL, "/busy") {
					assert.ErrorIs(t, c.Join(&l, address), frontier.ErrGroupBusy)
					o = frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}
				} else if others.Add(1) == 200 {
					over()
				}
				assert.NoError(t, c.Done(l, o))
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, 200, others.Load())
	x.ok("POST", "/v1/leases/"+holds+"/done", `{}`)
}

// A lease keeps what it says of itself when its host joins a group.
func TestAJoinChangesNoMore(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b", "c"}} {
		x := routeAt(t, 50*time.Millisecond, serve.Options{}, names...)
		c := x.client(client.Options{})
		host := x.host("a", 0)
		_, err := c.Add(t.Context(), frontier.Entry{URL: "http://" + host + "/1"}, frontier.Entry{URL: "http://" + host + "/2", Depth: 3})
		require.NoError(t, err)
		for range 2 {
			l, err := c.Next(t.Context())
			require.NoError(t, err)
			was := l
			require.NoError(t, c.Join(&l, address))
			assert.Equal(t, []any{was.Due, was.LeasedAt, was.Entry, was.Host, address}, []any{l.Due, l.LeasedAt, l.Entry, l.Host, l.Group})
			require.NoError(t, c.Done(l, frontier.Outcome{}))
		}
	}
}
