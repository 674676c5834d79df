package etcd

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/fleet/enginetest"
)

// A server that has lost a part of its folder counts as one that has lost all of it.
func TestLostVotes(t *testing.T) {
	x := enginetest.StartOf(Start).Three(t)
	require.NoError(t, x.All[1].Close())
	x.All[1] = nil
	require.NoError(t, os.RemoveAll(filepath.Join(x.Options[1].Dir, "member", "wal"))) // all else is there
	_, err := Start(t.Context(), x.Options[1])
	require.ErrorContains(t, err, "the fleet has begun")
}

func TestAFolderHasOneProcess(t *testing.T) {
	x := enginetest.StartOf(Start).Three(t)
	_, err := Start(t.Context(), x.Options[2])
	require.ErrorContains(t, err, "another process uses")
}
