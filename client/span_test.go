package client

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
)

// What was read from the machine's clock crosses the wire as a span, and a date of the calendar as it is.
func TestSpansAndDates(t *testing.T) {
	now := time.Now()
	date, wait := comes(now.Add(time.Minute), now)
	assert.Nil(t, date)
	assert.EqualValues(t, 60, *wait)
	_, wait = comes(now.Add(-time.Minute), now)
	assert.Zero(t, *wait)
	date, wait = comes(now.Add(time.Minute).Round(0), now)
	assert.Nil(t, wait)
	assert.WithinDuration(t, now.Add(time.Minute), *date, time.Millisecond)
	date, wait = comes(time.Time{}, now)
	assert.Nil(t, date)
	assert.Nil(t, wait)
}

// An end without a monotonic reading counts only if the clock was not set while the lease was out.
func TestEndsByAClockThatIsSet(t *testing.T) {
	now := time.Now()
	out := frontier.Lease{LeasedAt: now.Add(-time.Minute)}
	ended := now.Add(-2 * time.Second)
	assert.EqualValues(t, 2, *ago(&out, ended, now))
	assert.InDelta(t, 2, *ago(&out, ended.Round(0), now), 1e-3)
	assert.Zero(t, *ago(&out, now.Add(time.Hour), now))
	assert.Nil(t, ago(&out, time.Time{}, now))

	restored := frontier.Lease{LeasedAt: out.LeasedAt.Round(0)} // from another process
	assert.EqualValues(t, 2, *ago(&restored, ended, now))
	assert.Nil(t, ago(&restored, ended.Round(0), now))
}
