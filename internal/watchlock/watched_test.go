//go:build frontierholds

package watchlock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

type log []string

func (l *log) Taken()     { *l = append(*l, "taken") }
func (l *log) Releasing() { *l = append(*l, "releasing") }

func TestWatcherSeesTheHoldsFromNowOn(t *testing.T) {
	var m Mutex
	m.Lock()
	m.Unlock()
	var l log
	m.Lock()
	m.Watcher = &l
	m.Unlock()
	m.Lock()
	require.True(t, !m.TryLock())
	m.Unlock()
	require.True(t, m.TryLock())
	m.Unlock()
	require.Equal(t, log{"releasing", "taken", "releasing", "taken", "releasing"}, l)
}
