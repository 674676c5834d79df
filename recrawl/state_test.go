package recrawl_test

import (
	"encoding/hex"
	"math"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAnyFourBytesAreAState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s recrawl.State
		copy(s[:], rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "state"))
		assert.InDelta(t, 0, math.Log10(s.Rate()), 4+1e-9)
		assert.True(t, s.Weight() == 0 || s.Weight() > 0.9e-4 && s.Weight() < 1.1e4, "weight %v", s.Weight())
		if s.Crawled() {
			assert.True(t, s.Confidence() > 0.199 && s.Confidence() < 64.1)
		}
		assert.NotEmpty(t, s.String())
	})
}

// The bytes are kept for years.
func TestStateHasOneLayout(t *testing.T) {
	var zero recrawl.State
	assert.False(t, zero.Crawled())
	assert.Equal(t, 1., zero.Weight())
	s := recrawl.Known(1./30, 10)
	assert.Equal(t, "50c22000", hex.EncodeToString(s[:]))
	assert.InEpsilon(t, 1./30, s.Rate(), 0.037)
	assert.InEpsilon(t, 10, s.Weight(), 0.037)
	assert.InEpsilon(t, 16, s.Confidence(), 0.02)
	p := recrawl.Page{State: s, Host: 7, Last: time.Unix(1e9, 0).UTC(), Due: time.Unix(1e9+86400, 5).UTC()}
	b, err := p.AppendBinary(nil)
	require.NoError(t, err)
	assert.Equal(t, "50c220003b9aca003b9c1b81", hex.EncodeToString(b), "due is rounded up")
	var back recrawl.Page
	require.NoError(t, back.UnmarshalBinary(b))
	p.Due, p.Host = time.Unix(1e9+86401, 0).UTC(), 0
	assert.Equal(t, p, back)
	require.Error(t, back.UnmarshalBinary(b[1:]))
	b, _ = recrawl.Page{}.AppendBinary(nil)
	require.NoError(t, back.UnmarshalBinary(b))
	assert.True(t, back.Last.IsZero() && back.Due.IsZero())
}

func TestKnownTakesAnyNumber(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, -1, 1e300, 1e-300} {
		s := recrawl.Known(v, v)
		assert.False(t, math.IsNaN(s.Rate()) || math.IsNaN(s.Weight()), "%v: %v", v, s)
	}
}
