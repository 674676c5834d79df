package notify

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A slow reader loses what does not fit in, and learns how much.
func TestQueueIsBoundedAndKeepsTheOrder(t *testing.T) {
	type delivered struct {
		event int
		lost  int64
	}
	var got []delivered
	entered, leave := make(chan struct{}), make(chan struct{})
	q := Queue[int]{Deliver: func(e int, lost int64) {
		got = append(got, delivered{e, lost})
		if e == 0 {
			close(entered)
			<-leave
		}
	}}
	q.Put(0)
	<-entered
	for i := range maxPending + 7 {
		q.Put(1 + i)
	}
	require.Equal(t, int64(7), q.Lost())
	close(leave)
	q.End()
	require.Len(t, got, 1+maxPending)
	for i, x := range got {
		require.Equal(t, delivered{i, 0}, x)
	}
	q.Put(9)
	require.Equal(t, int64(8), q.Lost(), "after End events are lost")
	q.End()
}

func TestNextEventSaysHowManyWereLost(t *testing.T) {
	var lost []int64
	done := make(chan struct{})
	q := Queue[string]{Deliver: func(_ string, n int64) {
		lost = append(lost, n)
		close(done)
	}, lost: 3}
	q.Put("a")
	<-done
	require.Equal(t, []int64{3}, lost)
}

func TestARepeatedFailureIsNewsAfterAQuietTime(t *testing.T) {
	var r Repeats
	require.True(t, r.News("a", 0, 10))
	require.False(t, r.News("a", 9, 10))
	require.False(t, r.News("a", 18, 10), "the quiet time begins anew with each")
	require.True(t, r.News("b", 18, 10))
	require.True(t, r.News("a", 28, 10))
	r.Over("a")
	require.True(t, r.News("a", 29, 10))
}
