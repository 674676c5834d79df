// This file tests how the URLs of a domain are counted.

package frontier

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// While the hosts of a domain are counted, changes of those that were count, and no
// others.
func TestDomainCountGoesByItsCursor(t *testing.T) {
	f, err := Open(t.Context(), Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	s := Domain("example")
	require.NoError(t, f.SetLimits(s, Limits{Waiting: 100}))
	r, _ := f.controls.rule(s.ruleKey())
	d := &r.use.domain
	require.True(t, d.all)
	d.all, d.cursor = false, "example.m"
	_, err = f.Add(t.Context(), Entry{URL: "http://a.example/"}, Entry{URL: "http://m.example/"}, Entry{URL: "http://z.example/"}, Entry{URL: "http://example/"})
	require.NoError(t, err)
	require.EqualValues(t, 3, d.urls)
	require.NoError(t, f.countDomain(s))
	require.EqualValues(t, 4, d.urls)
	require.True(t, d.all)
	require.NoError(t, f.Check())
}
