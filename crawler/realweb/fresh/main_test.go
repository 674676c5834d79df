package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestFresh(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.Add(100 * time.Second)
	at := func(s ...int) (out []time.Time) {
		for _, x := range s {
			out = append(out, from.Add(time.Duration(x)*time.Second))
		}
		return out
	}
	for want, x := range map[float64][2][]time.Time{
		1:   {nil, at(-5)},
		0:   {at(-5), at(-10)},
		0.9: {at(-20, 50), at(-10, 20, 60)},
		0.5: {at(-20, -5), at(-10, 50)},
	} {
		assert.InDelta(t, want, fresh(x[0], x[1], from, to), 0.002)
	}
}
