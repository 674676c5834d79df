// This file attacks the ends of leases over HTTP.

package serve

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

// Overlapping requests in opposite orders, clients that go, repeats: no claim and no room is left, and
// equal lines get equal answers.
func TestRequestsThatEndTheSameLeasesBesideEachOther(t *testing.T) {
	x := serve(t, Options{MaxBuffered: 2 << 20})
	for i := range 400 {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://h%d.example/"}`, i))
	}
	var lines []string
	for _, l := range x.ok("POST", "/v1/leases", `{"hosts":400,"max":400}`)["leases"].([]any) {
		id := l.(map[string]any)["lease"].(string)
		lines = append(lines, fmt.Sprintf(`{"lease":%q,"add":[{"url":"http://n%d.example/","id":"i"},{"url":"bad","id":"j"},{"url":"http://same.example/"}]}`, id, len(lines)))
	}
	require.Len(t, lines, 400)
	var mu sync.Mutex
	answers := map[string]map[string]bool{}
	var wg sync.WaitGroup
	for g := range 12 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			for range 6 {
				p := r.Perm(400)[:150]
				p = append(p, p[:20]...)
				var b strings.Builder
				for _, i := range p {
					b.WriteString(lines[i] + "\n")
				}
				ctx, cancel := context.WithCancel(context.Background())
				var body io.Reader = strings.NewReader(b.String())
				if g%2 == 1 {
					body = io.MultiReader(body) // chunked
				}
				if g%3 == 0 {
					time.AfterFunc(time.Duration(r.IntN(5000))*time.Microsecond, cancel)
				}
				req, _ := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/done", body)
				req.Header.Set("Content-Type", "application/x-ndjson")
				res, err := x.http.Do(req)
				if err == nil {
					all, err := io.ReadAll(res.Body)
					res.Body.Close()
					if err == nil && res.StatusCode == 200 {
						mu.Lock()
						for n, a := range strings.Split(strings.TrimSpace(string(all)), "\n") {
							if n >= len(p) {
								break
							}
							k := lines[p[n]]
							if answers[k] == nil {
								answers[k] = map[string]bool{}
							}
							answers[k][a] = true
						}
						mu.Unlock()
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	for k, a := range answers {
		require.Len(t, a, 1, "%s: %v", k, a)
	}
	require.Eventually(t, func() bool { return x.s.room.used.Load() == 0 }, time.Minute, 10*time.Millisecond, "%d", x.s.room.used.Load())
	x.s.ended.mu.Lock()
	defer x.s.ended.mu.Unlock()
	require.Empty(t, x.s.ended.busy)
}

func TestALineEndsItsLeaseBeforeTheNextIsSent(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
	line := fmt.Sprintf(`{"lease":%q}`+"\n", x.lease()["lease"])
	c, err := net.Dial("tcp", strings.TrimPrefix(x.base, "http://"))
	require.NoError(t, err)
	defer c.Close()
	fmt.Fprintf(c, "POST /v1/done HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n%s", 2*len(line), line)
	require.Eventually(t, func() bool { return x.s.f.Stats().Leased == 0 }, 10*time.Second, time.Millisecond)
}

// boom panics once.
type boom struct{ n atomic.Int64 }

func (b *boom) Retry(frontier.Entry, int, frontier.Outcome) (time.Duration, bool) {
	if b.n.Add(1) == 1 {
		panic("policy")
	}
	return 0, true
}

func TestAPolicyThatPanicsHoldsNoClaim(t *testing.T) {
	x := serveFrontier(t, frontier.Options{Delay: frontier.FixedDelay(0), Retry: &boom{}, LeaseTime: time.Hour}, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
	id := x.lease()["lease"].(string)
	ask := func() (int, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, "POST", x.base+"/v1/leases/"+id+"/done", strings.NewReader(`{"result":"failed","failure":"timeout"}`))
		res, err := x.http.Do(r)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		return res.StatusCode, nil
	}
	_, err := ask()
	require.Error(t, err)
	code, err := ask()
	require.NoError(t, err, "the claim is held for ever")
	require.Equal(t, 200, code)
}

func TestAnEndWithoutABody(t *testing.T) {
	x := serve(t, Options{})
	for i, body := range []string{"", "\n", " {}"} {
		x.ok("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://a%d.example/"}`, i))
		x.ok("POST", "/v1/leases/"+x.lease()["lease"].(string)+"/done", body)
	}
}

func TestALeaseIDWithLineBreaks(t *testing.T) {
	x := serve(t, Options{})
	x.ok("POST", "/v1/urls", `{"url":"http://a.example/"}`)
	id := x.lease()["lease"].(string)
	r, _ := http.NewRequest("POST", x.base+"/v1/done", strings.NewReader(`{"lease":"`+id+`"}`+"\n"+`{"lease":"AAAAAAAA\n\n\n\nAAAA"}`+"\n"))
	r.Header.Set("Content-Type", "application/x-ndjson")
	res, err := x.http.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Contains(t, string(b), `{"lease":"`+id+`","added":0}`)
	require.Contains(t, string(b), "not-leased")
}
