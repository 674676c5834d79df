package console_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

// own is a policy that no request can set.
type own struct{}

func (own) Delay(string, frontier.Outcome) time.Duration { return time.Hour }
func (own) Max() time.Duration                           { return time.Hour }
func (own) String() string                               { return "an hour" }

func TestARuleCanBeReadAndSetAgain(t *testing.T) {
	priorities := frontier.PriorityMap{}
	priorities[1], priorities[16] = 2, 3
	limits := scope.Limits{Waiting: 1, Served: 2, Bytes: 3, Errors: 4, Depth: 5, Period: time.Hour}
	for _, want := range []frontier.Rule{
		{},
		{Delay: frontier.FixedDelay(0), Paused: scope.Off, Weight: 7},
		{Delay: frontier.FactorDelay(10, time.Second, time.Minute), Paused: scope.On, Held: true},
		{Concurrency: 2, BlockedUntil: time.Now().Add(time.Hour).UTC().Round(0), Priority: 3, Limits: limits},
		{Priorities: priorities, HostLimits: limits},
	} {
		b, err := json.Marshal(console.RuleOf(want))
		require.NoError(t, err)
		var r console.Rule
		require.NoError(t, json.Unmarshal(b, &r))
		got, err := r.Rule()
		require.NoError(t, err)
		assert.Equal(t, want, got, "%s", b)
	}
	r := console.RuleOf(frontier.Rule{Delay: own{}})
	assert.Equal(t, []console.Setting{{Name: "delay", Value: "an hour"}}, r.Set())
	_, err := r.Rule()
	assert.ErrorContains(t, err, "want fixed")
}
