package commit

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

var errFailed = errors.New("failed")

// A released caller hears of no result, who waits for it does, and a Reply that is used again has
// neither.
func TestReplies(t *testing.T) {
	var p Replies
	r := p.New()
	r.Release()
	_, left := p.Wait(t.Context(), r)
	require.Equal(t, ErrReleased, left)
	r.Send(errFailed)
	require.Equal(t, errFailed, r.Result())

	r = p.New()
	r.Release()
	r.Send(errFailed) // just then
	got, left := p.Wait(t.Context(), r)
	require.NoError(t, left)
	require.Equal(t, errFailed, got)

	ctx, cancel := context.WithCancel(t.Context())
	r = p.New()
	r.Send(nil)
	got, left = p.Wait(ctx, r)
	require.NoError(t, errors.Join(got, left))
	cancel()
	r = p.New()
	_, left = p.Wait(ctx, r)
	require.Equal(t, context.Canceled, left)
	r.Release()
	r.Send(errFailed)
	for range 100 {
		require.Empty(t, p.New())
	}
	require.Equal(t, errFailed, r.Result(), "the release is no result")
}
