// This file tests lists of changed URLs that are handed in.

package console_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/crawler/changefeed"
)

// A list of changed URLs is taken through every kind of Client, and its result reported. If it is not
// taken, or breaks off, the response says so.
func TestListsOfChanges(t *testing.T) {
	bare := console.Direct(newWorld(t, console.Options{}).c)
	_, err := bare.Changed(t.Context(), strings.NewReader("http://a.example/"), time.Time{})
	require.ErrorContains(t, err, "it fetches nothing again")
	var w *world
	var given time.Time
	w = newWorld(t, console.Options{Changed: func(ctx context.Context, list io.Reader, at time.Time) (changefeed.Result, error) {
		given = at
		return changefeed.Add(ctx, w.f, list, changefeed.Options{At: at})
	}})
	for name, c := range clients(t, w) {
		x, err := c.Changed(t.Context(), strings.NewReader("http://"+name+".example/\nno url\n"), time.Time{})
		require.NoError(t, err)
		assert.Equal(t, []int64{2, 1, 1}, []int64{x.URLs, x.New, x.Wrong}, name)
		require.Len(t, x.Faults, 1)
		assert.Equal(t, 2, x.Faults[0].Line)
		assert.Zero(t, given)
		_, err = c.Changed(t.Context(), strings.NewReader(""), time.Unix(1_000_000_000, 0))
		require.NoError(t, err)
		assert.EqualValues(t, 1_000_000_000, given.Unix())
		_, err = c.Changed(t.Context(), strings.NewReader(""), time.Now().Add(time.Hour))
		require.ErrorContains(t, err, "want a time that has passed")
		_, err = c.Changed(t.Context(), strings.NewReader(`{"host":"a.example","urlList":["http://a.example/1",`), time.Time{})
		require.ErrorContains(t, err, "changefeed: line 1: unexpected EOF (the 1 URLs before are taken)", name)
	}
}
