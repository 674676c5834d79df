//go:build frontierholds

package watchlock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type log []string

func (l *log) Taken()     { *l = append(*l, "taken") }
func (l *log) Releasing() { *l = append(*l, "releasing") }

func TestWatchSeesEachHold(t *testing.T) {
	var m Mutex
	m.Lock()
	m.Unlock()
	var l log
	Watch = &l
	t.Cleanup(func() { Watch = nil })
	m.Lock()
	require.False(t, m.TryLock())
	m.Unlock()
	require.True(t, m.TryLock())
	m.Unlock()
	require.Equal(t, log{"taken", "releasing", "taken", "releasing"}, l)
}
