package nats

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/enginetest"
	"github.com/seed-7440039f/frontier/internal/durablefs"
)

func TestEngine(t *testing.T) { enginetest.Test(t, enginetest.StartOf(Start)) }

func alone(t *testing.T) (*Engine, Options) {
	o := Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": enginetest.FreePort(t)}, Dir: t.TempDir()}
	e, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e, o
}

// Two servers never use one folder: both would write its votes.
func TestAFolderHasOneServer(t *testing.T) {
	e, o := alone(t)
	_, err := Start(t.Context(), o)
	require.ErrorIs(t, err, durablefs.ErrLocked)
	require.NoError(t, e.Close())
	e, err = Start(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// A log that was there and is not is an error, not an empty log.
func TestALogIsLost(t *testing.T) {
	e, _ := alone(t)
	_, err := e.Append(t.Context(), 3, 0, []byte("r"))
	require.NoError(t, err)
	_, err = call(t.Context(), e.conn, "$JS.API.STREAM.DELETE."+e.logOf(3), nil)
	require.NoError(t, err)
	e.known.Clear() // as after a start
	_, err = e.Append(t.Context(), 3, 0, []byte("r"))
	require.ErrorIs(t, err, errLost)
	require.NotErrorIs(t, err, fleet.ErrConflict)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, _, err = e.Last(ctx, 3) // asks until ctx ends: a server may not know yet what there is
	require.ErrorIs(t, err, errLost)
	_, err = e.Append(t.Context(), 4, 0, []byte("r"))
	require.NoError(t, err)
}

// A request that is given up says what was wrong, also when the last attempt was cut short.
func TestTheReasonOutlivesTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	err := again(ctx, func() error {
		if asked++; asked == 1 {
			return errLost
		}
		cancel()
		return ctx.Err()
	})
	require.ErrorIs(t, err, errLost)
	require.ErrorIs(t, err, context.Canceled)
}

// Only what is further than expected is a conflict: an end that is behind is that of a server that does not know the end.
func TestAnOldEndIsNoConflict(t *testing.T) {
	e, _ := alone(t)
	n, err := e.Append(t.Context(), 3, 0, []byte("r"))
	require.NoError(t, err)
	_, err = e.Append(t.Context(), 3, 0, []byte("s"))
	require.ErrorIs(t, err, fleet.ErrConflict)
	_, err = e.Append(t.Context(), 3, n+1, []byte("s"))
	require.Error(t, err)
	require.NotErrorIs(t, err, fleet.ErrConflict)
	n, err = e.Append(t.Context(), 3, n, make([]byte, recordMost))
	require.NoError(t, err)
	_, err = e.Append(t.Context(), 3, n, make([]byte, recordMost+1))
	require.ErrorContains(t, err, "are more than 4194304")
}

// A server that stores nothing any more says so.
func TestAServerFails(t *testing.T) {
	e, _ := alone(t)
	e.log.Errorf("%s", "no space left on device")
	require.NoError(t, e.server.DisableJetStream())
	select {
	case err := <-e.Failed():
		require.ErrorContains(t, err, "no space left on device")
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is said")
	}
}

func TestFoldersThatDoNotFit(t *testing.T) {
	e, o := alone(t)
	require.ErrorContains(t, e.Admit(t.Context(), "b", "127.0.0.1:1"), "cannot grow")
	require.NoError(t, e.Close())
	o.Peers = map[string]string{"a": o.Peers["a"], "b": enginetest.FreePort(t)}
	_, err := Start(t.Context(), o)
	require.ErrorContains(t, err, "want an empty folder")
	votes := filepath.Join(o.Dir, server.JetStreamStoreDir, systemAccount, "_js_", "_meta_")
	require.NoError(t, os.MkdirAll(votes, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(votes, "peers.idx"), nil, 0o600))
	delete(o.Peers, "b")
	_, err = Start(t.Context(), o)
	require.ErrorContains(t, err, "want the addresses of others")
}

// The folder of a node that has another one now takes part no more.
func TestAnOldFolderReturns(t *testing.T) {
	x := enginetest.StartOf(Start).Three(t)
	require.NoError(t, x.All[1].Close())
	old := x.Options[1]
	require.NoError(t, x.All[0].Admit(t.Context(), "n1", old.Peers["n1"]))
	x.Options[1].Dir = t.TempDir()
	e, err := Start(t.Context(), x.Options[1])
	require.NoError(t, err)
	require.NoError(t, e.Close())
	x.All[1] = nil
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = Start(ctx, old)
	require.ErrorContains(t, err, "takes part no more")
	x.All[1], err = enginetest.StartOf(Start)(t.Context(), x.Options[1])
	require.NoError(t, err)
}

// That another machine is stopped, or has not started yet, is no error of this one.
func TestAMachineThatIsAwayIsAWarning(t *testing.T) {
	var out strings.Builder
	l := &logger{to: slog.New(slog.NewTextHandler(&out, nil))}
	l.Errorf("Error trying to connect to route (attempt %d): %v", 1, "connection refused")
	require.Contains(t, out.String(), "level=WARN")
	l.Errorf("no space")
	require.Equal(t, 1, strings.Count(out.String(), "level=ERROR"), out.String())
}
