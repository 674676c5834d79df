package peer

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Machines that were started for different fleets do not begin, and say why.
func TestMachinesThatDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := map[string]string{"a": "10.0.0.1:8349", "b": "10.0.0.2:8349"}
		for name, other := range map[string]Options{
			"another name":       {Fleet: "else", Peers: peers},
			"another address":    {Fleet: "demo", Peers: map[string]string{"a": "10.0.0.9:8349", "b": "10.0.0.2:8349"}},
			"one machine more":   {Fleet: "demo", Peers: map[string]string{"a": "10.0.0.1:8349", "b": "10.0.0.2:8349", "c": "10.0.0.3:8349"}},
			"the same, at first": {Fleet: "demo", Peers: peers},
		} {
			var said bytes.Buffer
			o := Options{Fleet: "demo", Node: "a", Peers: peers, Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&said, nil))}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			stage := Ready
			how, err := o.Begin().Wait(ctx, func(context.Context, string, string) (Stage, error) { return o.Hears(other.Says(stage)) })
			cancel()
			if name == "the same, at first" {
				require.NoError(t, err)
				require.Equal(t, Ready, how)
				stage, other.Peers = Begun, nil // it has more machines by now
				how, err = o.Begin().Wait(t.Context(), func(context.Context, string, string) (Stage, error) { return o.Hears(other.Says(stage)) })
				require.NoError(t, err)
				require.Equal(t, Ready, how)
				continue
			}
			require.ErrorContains(t, err, "not all of a, b are there", name)
			require.Contains(t, said.String(), "b: it was started with -fleet "+other.Fleet+" -fleet-peers "+other.List(""), name)
			require.Contains(t, said.String(), "and this machine with -fleet demo -fleet-peers a=10.0.0.1:8349,b=10.0.0.2:8349", name)
		}
		o := Options{Fleet: "demo", Peers: peers}
		for _, said := range []string{"", "4 x", "-1", "x"} {
			_, err := o.Hears([]byte(said))
			require.ErrorContains(t, err, "it says")
		}
	})
}
