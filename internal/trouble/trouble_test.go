package trouble

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var (
	backoff    = Backoff{Base: 2 * time.Second, Max: 10 * time.Minute, Jitter: 0.1, ForgiveAfter: 10 * time.Minute}
	quarantine = Quarantine{After: 8, Probe: 10 * time.Minute, MaxProbe: 24 * time.Hour, Probes: 3}
)

// Whatever happens to a host, its gap stays within bounds, concurrent failures raise the step once,
// and a good contact ends a quarantine.
func TestStateOverItsLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x State
		lease, now := uint64(0), int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"failed": func(t *rapid.T) {
				lease++
				old := x
				f := Failure{
					Kind: 5, Slows: rapid.Bool().Draw(t, "slows"), Paced: rapid.Bool().Draw(t, "paced"), Slowed: rapid.Bool().Draw(t, "slowed"),
					Lease: lease - min(lease-1, rapid.Uint64Range(0, 3).Draw(t, "age")), Last: lease, End: now, Lanes: rapid.Int32Range(1, 8).Draw(t, "lanes"),
				}
				x.Failed(f, &backoff, &quarantine)
				require.LessOrEqual(t, x.Step, old.Step+1)
				if f.Lease <= old.Raised || !f.Slows || old.Probes > 0 {
					require.Equal(t, old.Step, x.Step, "it says nothing about the pace")
				}
				if f.Lease <= old.Counted {
					require.Equal(t, old.Fails, x.Fails)
				}
				require.False(t, x.Over() && f.Lease > old.Counted)
			},
			"succeeded": func(t *rapid.T) {
				lease++
				old := x
				x.Succeeded(lease, now, int64(backoff.Gap(max(1, x.Step))), 8, &backoff)
				require.Zero(t, x.Probes)
				require.Zero(t, x.Fails)
				require.LessOrEqual(t, x.Step, old.Step)
			},
			"later": func(t *rapid.T) {
				now += rapid.Int64Range(0, int64(3*time.Hour)).Draw(t, "step")
			},
			"": func(t *rapid.T) {
				n := rapid.Int32Range(1, 8).Draw(t, "of")
				require.LessOrEqual(t, x.Allowed(n), n)
				require.Positive(t, x.Allowed(n))
				require.Equal(t, x.Probes > 3, x.Lost(&quarantine))
				require.Less(t, x.Until()-x.Quiet, int64(8*24*time.Hour))
				if x.Step > 0 {
					require.LessOrEqual(t, backoff.Gap(x.Step), backoff.Max)
				}
			},
		})
	})
}

func TestGapsAndIntervalsDouble(t *testing.T) {
	require.Equal(t, 2*time.Second, backoff.Gap(1))
	require.Equal(t, 16*time.Second, backoff.Gap(4))
	require.Equal(t, backoff.Max, backoff.Gap(math.MaxUint8))
	require.Equal(t, 40*time.Minute, quarantine.Interval(3))
	require.Equal(t, 24*time.Hour, quarantine.Interval(math.MaxUint8))
}

func TestJitterOnlyLengthens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "d"))
		extra := backoff.AtRandom(d, rapid.Uint64().Draw(t, "x"))
		require.GreaterOrEqual(t, extra, time.Duration(0))
		require.LessOrEqual(t, d+extra, backoff.Longest(d))
	})
}
