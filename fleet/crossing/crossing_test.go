package crossing

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// While no machine has the frontier, clients learn that at once; when this one has it, they reach it, under
// their own addresses; when it ends, so do their connections.
func TestClientsOfAMachineThatComesAndGoes(t *testing.T) {
	x := New(Options{Most: 4, Plain: []string{"http"}, MayLook: func(r *http.Request) bool { return r.URL.RawQuery == "who=a" }, Logger: slog.New(slog.DiscardHandler)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	x.Add("http", 0, l)
	client := &http.Client{Transport: &http.Transport{}}
	ask := func(path string) (int, string) {
		a, err := client.Get("http://" + l.Addr().String() + path)
		require.NoError(t, err)
		defer a.Body.Close()
		b, err := io.ReadAll(a.Body)
		require.NoError(t, err)
		return a.StatusCode, string(b)
	}
	status, text := ask("/v1/leases")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, "problems/busy")
	status, _ = ask("/livez")
	require.Equal(t, http.StatusOK, status)
	status, text = ask(Path + "?who=a")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Contains(t, text, "has not joined", "operators are answered all the same")
	_, text = ask(Path + "?who=b")
	require.Contains(t, text, "the frontier is not to be had here", "others are not")

	here := x.listen(0)["http"]
	require.Equal(t, l.Addr(), here.Addr())
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.RemoteAddr) })}
	served := make(chan error)
	go func() { served <- s.Serve(here) }()
	status, text = ask("/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, text, "127.0.0.1:")

	x.cut(0)
	require.NoError(t, s.Close())
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	status, _ = ask("/")
	require.Equal(t, http.StatusServiceUnavailable, status)
	client.CloseIdleConnections()
	require.NoError(t, l.Close())
	x.Close()
}

// A client that neither reads nor writes is cut with its connection to another machine, and leaves its slot.
func TestASilentClientIsCut(t *testing.T) {
	x := &Crossing{slots: make(chan struct{}, 1), open: map[net.Conn]led{}, over: make(chan struct{}), vacant: &http.Server{}}
	client, near := net.Pipe()
	far, machine := net.Pipe()
	x.slots <- struct{}{}
	x.open[far] = led{3, "http://b"}
	over := make(chan bool)
	go func() { over <- x.pipe(near, &crossed{readAhead: readAhead{far, bufio.NewReader(far)}, x: x}) }()
	_, err := machine.Write([]byte("an answer")) // the client does not read it
	require.NoError(t, err)
	x.Close()
	require.True(t, <-over)
	require.Empty(t, x.open)
	require.Empty(t, x.slots)
	require.NoError(t, errors.Join(client.Close(), machine.Close()))
}

// stuck is an engine that answers nothing.
type stuck struct{ fleet.Engine }

func (stuck) Get(ctx context.Context, _ string) (fleet.Entry, error) {
	<-ctx.Done()
	return fleet.Entry{}, ctx.Err()
}

// A machine whose engine fails says why, also before it has joined.
func TestAnEngineFailsBeforeTheMachineHasJoined(t *testing.T) {
	x := New(Options{Logger: slog.New(slog.DiscardHandler)})
	defer x.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	fails, full := make(chan error, 1), errors.New("the disk is full")
	fails <- full
	require.ErrorIs(t, x.Run(t.Context(), Node{Fleet: fleet.Options{Node: "a", Dir: t.TempDir(), Engine: stuck{}, TTL: 15 * time.Second, Partitions: 1}, Inside: l, Failed: fails}), full)
}
