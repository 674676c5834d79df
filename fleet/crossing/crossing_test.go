package crossing

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
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
