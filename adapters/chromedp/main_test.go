package frontierchromedp

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier/crawler/fetch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take that a browser does: it says that something is wrong, never
// how fast something is.
const patience = 3 * time.Minute

// visit is a request as a server saw it.
type visit struct {
	path       string
	begin, end time.Time
}

// site is a server with an address of its own, that notes what it is asked for.
type site struct {
	addr string

	mu     sync.Mutex
	visits []visit // guarded by mu; in the order of their ends
}

// serve serves a host at the n-th address of loopback.
func serve(t *testing.T, n int, h http.HandlerFunc) *site {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", n))
	require.NoError(t, err)
	s := &site{addr: l.Addr().String()}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := visit{path: r.URL.Path, begin: time.Now()}
		defer func() {
			v.end = time.Now()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.visits = append(s.visits, v)
		}()
		h(w, r)
	}))
	_ = srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	return s
}

// asked is the paths that were asked for, in the order of their ends.
func (s *site) asked() (paths []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.visits {
		paths = append(paths, v.path)
	}
	return paths
}

// renderer returns a Renderer that knows hosts by name.
func renderer(t *testing.T, o Options, hosts map[string]*site) *Renderer {
	t.Helper()
	o.Browser = os.Getenv("FRONTIER_CHROMIUM")
	if o = o.withDefaults(); o.Browser == "" && os.Getenv("CI") == "" {
		t.Skip("no Chromium here: install one, or name it in FRONTIER_CHROMIUM")
	}
	// Chromium refuses to run as root with its sandbox, and CI runs as root in a container that is
	// thrown away. These pages are the test's own.
	o.NoSandbox = os.Geteuid() == 0
	o.Quiet = max(o.Quiet, 2*time.Second) // the machine may be busy
	o.Fetch.UserAgent, o.Fetch.Resolve = "testbot/1", map[string]string{}
	for name, s := range hosts {
		o.Fetch.Resolve[name] = s.addr
	}
	r, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// text is the body of a Result.
func text(t *testing.T, res *fetch.Result) string {
	t.Helper()
	b, err := res.Body.Bytes()
	require.NoError(t, err)
	require.NoError(t, res.Close())
	return string(b)
}

// html5 writes a page.
func html5(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, "<!DOCTYPE html><title>empty</title>", text)
}
