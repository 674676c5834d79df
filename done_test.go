package frontier

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// Done makes nothing for those that may stop waiting while everybody waits.
func TestDoneAllocatesNothing(t *testing.T) {
	ctx := context.Background()
	f, err := Open(ctx, Options{Delay: FixedDelay(0), KeepOpen: true})
	require.NoError(t, err)
	defer f.Close()
	const runs = 100
	for i := range runs + 1 {
		_, err := f.Add(ctx, Entry{URL: "http://a.example/" + strconv.Itoa(i)})
		require.NoError(t, err)
	}
	require.LessOrEqual(t, testing.AllocsPerRun(runs, func() {
		l, err := f.Next(ctx)
		require.NoError(t, err)
		require.NoError(t, f.Done(l, Outcome{}))
	}), 1.0, "the lease has its URL")
	require.NoError(t, f.Check())
}
