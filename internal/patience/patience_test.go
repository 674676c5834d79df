package patience

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var errOver = errors.New("over")

// stuck is a call that does not return before the test ends.
func stuck(t *testing.T) func() (int, error) {
	c := make(chan struct{})
	t.Cleanup(func() { close(c) })
	return func() (int, error) { <-c; return 7, nil }
}

func TestACallIsLeft(t *testing.T) {
	life, end := context.WithCancelCause(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Ask(ctx, life, stuck(t))
	require.ErrorIs(t, err, context.Canceled)
	end(errOver)
	_, err = Ask(t.Context(), life, stuck(t))
	require.ErrorIs(t, err, errOver)
	_, err = InTime(t.Context(), life, stuck(t))
	require.ErrorIs(t, err, errOver)
	v, err := Ask(Forever, life, func() (int, error) { return 7, nil })
	require.NoError(t, err, "who waits for ever hears of no end")
	require.Equal(t, 7, v)
}

func TestWhatACallReturns(t *testing.T) {
	v, err := Ask(t.Context(), t.Context(), func() (int, error) { return 7, io.EOF })
	require.Equal(t, 7, v)
	require.Equal(t, io.EOF, err)
	require.PanicsWithValue(t, "oh", func() {
		_, _ = Ask(t.Context(), t.Context(), func() (int, error) { panic("oh") })
	})
}

// A call that watches its context has a second to report what it has done.
func TestAResultInTimeCounts(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := InTime(ctx, t.Context(), func() (int, error) { <-ctx.Done(); return 7, ctx.Err() })
	require.Equal(t, 7, v)
	require.ErrorIs(t, err, context.Canceled)
	_, err = InTime(ctx, t.Context(), stuck(t))
	require.Equal(t, context.Canceled, err)
}

func TestWhatIsLentIsGivenBack(t *testing.T) {
	r, end := LendReader(strings.NewReader("abc"), errOver)
	b := make([]byte, 1)
	_, err := r.Read(b)
	require.NoError(t, err)
	_, err = r.(io.Seeker).Seek(0, io.SeekStart)
	require.NoError(t, err)
	end()
	_, err = r.Read(b)
	require.ErrorIs(t, err, errOver)
	_, err = r.(io.Seeker).Seek(0, io.SeekStart)
	require.ErrorIs(t, err, errOver)

	r, _ = LendReader(io.LimitReader(strings.NewReader("abc"), 1), errOver)
	require.NotImplements(t, (*io.Seeker)(nil), r)

	var out bytes.Buffer
	w, end := LendWriter(&out, errOver)
	_, err = w.Write([]byte("x"))
	require.NoError(t, err)
	end()
	_, err = w.Write([]byte("y"))
	require.ErrorIs(t, err, errOver)
	require.Equal(t, "x", out.String())
}

// Hands are used again, also one whose caller has left, and end with the others.
func TestHandsAreUsedAgain(t *testing.T) {
	life, end := context.WithCancelCause(t.Context())
	var h Hands
	idle := func() int { h.mu.Lock(); defer h.mu.Unlock(); return len(h.idle) }
	n, late := 0, make(chan struct{})
	for range 100 {
		require.NoError(t, h.Do(t.Context(), life, func() { n++ }, func() { t.Error("nobody left") }))
	}
	require.Equal(t, 100, n)
	require.Equal(t, 1, idle(), "one is enough for calls one after the other")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stuck := make(chan struct{})
	require.ErrorIs(t, h.Do(ctx, life, func() { <-stuck }, func() { close(late) }), context.Canceled)
	require.Zero(t, idle())
	close(stuck)
	<-late
	require.Eventually(t, func() bool { return idle() == 1 }, time.Minute, time.Millisecond)

	stuck, late = make(chan struct{}), make(chan struct{})
	end(errOver)
	require.ErrorIs(t, h.Do(t.Context(), life, func() { <-stuck }, func() { close(late) }), errOver)
	h.End()
	close(stuck)
	<-late
	require.NoError(t, h.Do(t.Context(), t.Context(), func() { n++ }, nil))
	require.Equal(t, 101, n)
	require.Zero(t, idle(), "none idles after the end")
}
