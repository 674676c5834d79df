// This file tests how long answers hold when the machine's clocks drift apart.

package dns

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier/internal/lab/drift"
)

func TestAnswersHoldByBothClocks(t *testing.T) {
	now := time.Now()
	until := now.Add(time.Hour)
	assert.Equal(t, time.Hour, left(until, now))
	assert.Equal(t, -7*time.Hour, left(until, drift.Time(now.Add(8*time.Hour), 8*time.Hour)), "after a suspend")
	assert.Equal(t, -7*time.Hour, left(until, drift.Time(now, -8*time.Hour)), "eight hours later the clock is set back by as much")
}
