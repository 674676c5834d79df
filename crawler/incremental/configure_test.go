package incremental

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

type fakeRiser struct{ frontier.Prioritizer }

func (fakeRiser) Found(frontier.Entry) int    { return 5 }
func (fakeRiser) Rise(frontier.Entry) float64 { return 6 }

// A Riser stays one: pages that were never crawled can rise.
func TestConfigureKeepsARiser(t *testing.T) {
	r, err := Open(Options{})
	require.NoError(t, err)
	o := frontier.Options{Prioritizer: fakeRiser{frontier.Constant(1)}}
	r.Configure(&o)
	x, ok := o.Prioritizer.(frontier.Riser)
	require.True(t, ok)
	assert.Equal(t, 5, x.Found(frontier.Entry{}))
	assert.Equal(t, 6.0, x.Rise(frontier.Entry{}))
	assert.Equal(t, Recrawled+1, x.Priority(frontier.Entry{}, frontier.History{}))
	assert.Equal(t, Recrawled, x.Priority(frontier.Entry{}, frontier.History{Visits: 1}))

	o = frontier.Options{}
	r.Configure(&o)
	_, ok = o.Prioritizer.(frontier.Riser)
	assert.False(t, ok)
}
