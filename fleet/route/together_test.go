package route

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What several clients send while a part is busy goes there in few requests. Each gets its own answers, and acts
// with its own token.
func TestLinesOfSeveralClients(t *testing.T) {
	x := route(t, "a")
	var requests, arrived, mixed atomic.Int64
	begin := make(chan struct{})
	part := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		requests.Add(1)
		b, _ := io.ReadAll(q.Body)
		arrived.Add(int64(strings.Count(string(b), "\n")) / 2)
		<-begin
		if !strings.HasPrefix(q.URL.Path, "/v1/urls") {
			return
		}
		for line := range strings.Lines(string(b)) {
			var e struct{ URL, ID string }
			_ = json.Unmarshal([]byte(line), &e)
			if "Bearer "+strings.Split(e.ID, "-")[0] != q.Header.Get("Authorization") {
				mixed.Add(1)
			}
			if strings.HasSuffix(e.ID, "-broken") {
				return
			}
			_, _ = fmt.Fprintf(w, `{"id":%q,"status":"new"}`+"\n", e.ID)
		}
	}))
	defer part.Close()
	x.r.parts[0].bases = []string{part.URL}
	var all sync.WaitGroup
	ask := func(token, id string) (int, string) {
		return x.ask("POST", "/v1/urls", fmt.Sprintf(`{"url":"http://a.example/","id":"%s-%s"}`+"\n"+`{"url":"http://a.example/2","id":"%s-%s-2"}`+"\n", token, id, token, id), append(ndjson, "Authorization", "Bearer "+token)...)
	}
	for i := range 60 {
		token := fmt.Sprint("t", i%2)
		all.Go(func() {
			code, text := ask(token, fmt.Sprint(i))
			assert.Equal(t, http.StatusOK, code)
			assert.Equal(t, fmt.Sprintf(`{"id":"%s-%d","status":"new"}`+"\n"+`{"id":"%s-%d-2","status":"new"}`+"\n", token, i, token, i), text)
		})
	}
	waits := func(n int) func() bool {
		return func() bool {
			x.r.lanes.mu.Lock()
			defer x.r.lanes.mu.Unlock()
			got := 0
			for _, w := range x.r.lanes.waits {
				got += len(w)
			}
			return got+int(arrived.Load()) == n
		}
	}
	assert.Eventually(t, waits(60), 10*time.Second, time.Millisecond)
	close(begin)
	all.Wait()
	assert.LessOrEqual(t, requests.Load(), int64(8), "two for each token, and two with the rest")
	assert.Zero(t, mixed.Load())

	code, text := ask("t0", "broken")
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "its answer broke off")
	assert.Eventually(t, func() bool {
		x.r.lanes.mu.Lock()
		defer x.r.lanes.mu.Unlock()
		return len(x.r.lanes.waits)+len(x.r.lanes.sends) == 0
	}, 10*time.Second, time.Millisecond)
}
