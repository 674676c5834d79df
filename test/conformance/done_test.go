package conformance

import (
	"context"
	"strconv"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// Done makes nothing for those that may stop waiting while everybody waits.
func TestDoneAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	f, err := frontier.Open(ctx, frontier.Options{Delay: frontier.FixedDelay(0), KeepOpen: true})
	require.NoError(t, err)
	defer f.Close()
	const runs = 100
	for i := range runs + 1 {
		_, err := f.Add(ctx, frontier.Entry{URL: "http://a.example/" + strconv.Itoa(i)})
		require.NoError(t, err)
	}
	most := 1.0 // the lease has its URL
	if harness.RaceEnabled {
		most = 20 // the detector has pools drop things at random
	}
	require.LessOrEqual(t, testing.AllocsPerRun(runs, func() {
		l, err := f.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, f.Done(l, frontier.Outcome{}))
	}), most)
	require.NoError(t, f.Check())
}
