// This file writes figures for people.

package main

import (
	"fmt"
	"math"
	"strings"
)

// show writes a value for people.
func show(v float64, unit string) string {
	switch unit {
	case "us":
		switch {
		case math.Abs(v) >= 1e6:
			return digits(v/1e6) + " s"
		case math.Abs(v) >= 1e3:
			return digits(v/1e3) + " ms"
		}
		return digits(v) + " us"
	case "":
		return digits(v)
	case "/h", "/s/h", "B/h", "us/h":
		return show(v, strings.TrimSuffix(unit, "/h")) + " an hour"
	case "/s":
		return count(v) + "/s"
	case "B", "B/s":
		for _, u := range []struct {
			size float64
			name string
		}{{1e9, "GB"}, {1e6, "MB"}, {1e4, "kB"}} {
			if math.Abs(v) >= u.size {
				if u.size == 1e4 {
					u.size = 1e3
				}
				return digits(v/u.size) + " " + u.name + unit[1:]
			}
		}
	}
	return digits(v) + " " + unit
}

// count writes a number with k or M.
func count(v float64) string {
	switch {
	case math.Abs(v) >= 1e6:
		return digits(v/1e6) + " M"
	case math.Abs(v) >= 1e4:
		return digits(v/1e3) + " k"
	}
	return digits(v)
}

// digits are three that mean something.
func digits(v float64) string {
	a := math.Abs(v)
	switch {
	case a >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
