package trycount_test

import (
	"fmt"
	"testing"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/stretchr/testify/require"
)

func TestCountsOfAllTestsAreAddedUp(t *testing.T) {
	a := trycount.Count{Tried: 3, Lost: 1}
	b := trycount.Count{Tried: 40, Duplicated: 2, Violations: 5}
	output := fmt.Sprintf("=== RUN   TestX\n    x_test.go:12: proof: %v\nnoise\n    y_test.go:7: proof: %v\nPASS\n", a, b)
	require.Equal(t, trycount.Count{Tried: 43, Lost: 1, Duplicated: 2, Violations: 5}, trycount.Parse([]byte(output)))
	require.Zero(t, trycount.Parse([]byte("no counts here")))
}

// recorder is a test whose end can be looked at.
type recorder struct {
	testing.TB
	failed bool
	ends   []func()
	log    string
}

func (r *recorder) Cleanup(f func())           { r.ends = append(r.ends, f) }
func (r *recorder) Failed() bool               { return r.failed }
func (r *recorder) Logf(f string, args ...any) { r.log += fmt.Sprintf(f, args...) }

func TestFailuresCountAsViolationsUnlessTheyAreTold(t *testing.T) {
	for _, c := range []struct {
		failed bool
		lost   int
		want   trycount.Count
	}{
		{false, 0, trycount.Count{Tried: 7}},
		{true, 0, trycount.Count{Tried: 7, Violations: 1}},
		{true, 2, trycount.Count{Tried: 7, Lost: 2}},
	} {
		r := &recorder{TB: t, failed: c.failed}
		x := trycount.Of(r)
		x.Tried(7)
		x.Lost(c.lost)
		require.Empty(t, r.log, "it is told at the end")
		r.ends[0]()
		require.Equal(t, c.want, trycount.Parse([]byte(r.log)))
	}
}
