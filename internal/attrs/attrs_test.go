package attrs

import (
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type inner struct{ Count int64 }

func (x inner) LogValue() slog.Value { return slog.GroupValue(slog.Int64("count", x.Count)) }

func TestGroup(t *testing.T) {
	x := struct {
		HandedOut int64
		PerSecond float64
		Longest   time.Duration
		Done      [8]int64
		Waits     inner
		By        []int64
		Rates     struct{ Added float64 }
	}{HandedOut: 1, PerSecond: 2.5, Longest: 1500 * time.Millisecond, Waits: inner{3}, By: []int64{4, 5}}
	x.Done[1] = 6
	x.Rates.Added = 7
	got := AppendJSON(nil, Group(x, func(i int) string { return "result " + strconv.Itoa(i) }))
	require.JSONEq(t, `{"handed_out": 1, "per_second": 2.5, "longest_s": 1.5, "done": {"result_0": 0, "result_1": 6, "result_2": 0,
		"result_3": 0, "result_4": 0, "result_5": 0, "result_6": 0, "result_7": 0}, "waits": {"count": 3}, "by": {"1": 4, "2": 5},
		"rates": {"added": 7}}`, string(got))
}
