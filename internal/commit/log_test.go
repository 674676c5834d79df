package commit

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// op is an operation of some bytes; one of none is alone.
type op struct{ id, bytes int }

func newLog() Log[op] {
	return New(func(o op) int { return o.bytes }, func(o op) bool { return o.bytes == 0 })
}

func TestGroupsComeInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLog()
		var waiting, taken []op
		next := 0
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				next++
				o := op{next, rapid.IntRange(0, 5).Draw(t, "bytes")}
				l.Add(o)
				waiting = append(waiting, o)
			},
			"take": func(t *rapid.T) {
				most := rapid.IntRange(1, 20).Draw(t, "most")
				group := l.Take(most)
				require.True(t, slices.Equal(waiting[:len(group)], group))
				waiting, taken = waiting[len(group):], append(taken, group...)
				size := 0
				for i, o := range group {
					require.Less(t, size, most)
					require.True(t, o.bytes > 0 || len(group) == 1 && i == 0, "it shares no group")
					size += o.bytes
				}
				if size < most && len(group) > 0 && group[0].bytes > 0 && len(waiting) > 0 {
					require.Zero(t, waiting[0].bytes, "there was room for the next one")
				}
				require.True(t, len(group) > 0 || len(waiting) == 0)
			},
			"fail": func(t *rapid.T) {
				odd := func(o op) bool { return o.id%2 == 1 }
				for _, o := range l.TakeWith(odd) {
					require.True(t, odd(o) && o.bytes > 0)
					i := slices.Index(waiting, o)
					waiting, taken = slices.Delete(waiting, i, i+1), append(taken, o)
				}
				require.False(t, slices.ContainsFunc(waiting, func(o op) bool { return odd(o) && o.bytes > 0 }))
			},
			"settle": func(*rapid.T) {
				for _, o := range taken {
					l.Settled(o)
				}
				l.End()
				taken = nil
			},
			"": func(t *rapid.T) {
				require.True(t, slices.Equal(waiting, slices.Collect(l.Waiting())))
				bytes := 0
				for _, o := range slices.Concat(waiting, taken) {
					bytes += o.bytes
				}
				require.EqualValues(t, bytes, l.Bytes())
				if len(waiting) > 0 {
					require.True(t, l.Busy())
				}
			},
		})
	})
}

// What comes before the end is committed, and what comes meanwhile wakes the goroutine.
func TestRunCommitsAllThatCame(t *testing.T) {
	var mu sync.Mutex
	l, stop := newLog(), make(chan struct{})
	var got []int
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.Run(stop, func() bool {
			mu.Lock()
			defer mu.Unlock()
			group := l.Take(3)
			for _, o := range group {
				got = append(got, o.id)
				l.Settled(o)
			}
			l.End()
			return len(group) > 0
		})
	}()
	want := make([]int, 0, 1000)
	for i := range 1000 {
		mu.Lock()
		l.Add(op{i, i % 3})
		mu.Unlock()
		want = append(want, i)
	}
	close(stop)
	<-over
	require.Equal(t, want, got)
	require.False(t, l.Busy())
	require.Zero(t, l.Bytes())
}
