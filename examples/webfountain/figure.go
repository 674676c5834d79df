// This file draws lines in a frame, as SVG.

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

type line struct {
	name   string
	points [][2]float64
}

type figure struct {
	file, title, across string
	lines               []line
}

const (
	width, height            = 720, 360
	left, right, top, bottom = 50, 190, 34, 40
)

// draw returns the figure; both axes start at 0.
func (f figure) draw() string {
	maxX, maxY := 1e-9, 1e-9
	for _, l := range f.lines {
		for _, p := range l.points {
			maxX, maxY = max(maxX, p[0]), max(maxY, 1.05*p[1])
		}
	}
	x := func(v float64) float64 { return left + v/maxX*(width-left-right) }
	y := func(v float64) float64 { return height - bottom - v/maxY*(height-top-bottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="%d" y="18" font-weight="bold">%s</text>`+"\n", left, html.EscapeString(f.title))
	for v := 0.; v <= maxY; v += round(maxY / 5) {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.3g</text>`+"\n", left, y(v), width-right, left-4, y(v)+4, v)
	}
	for v := 0.; v <= maxX; v += round(maxX / 7) {
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%.4g</text>`+"\n", x(v), height-bottom+14, v)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">%s</text>`+"\n", left, height-8, html.EscapeString(f.across))
	for i, l := range f.lines {
		color := [...]string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd"}[i%4]
		fmt.Fprintf(&b, `<path stroke="%s" fill="none" d="`, color)
		for j, p := range l.points {
			fmt.Fprintf(&b, "%c%.1f %.1f", "ML"[min(j, 1)], x(p[0]), y(p[1]))
		}
		fmt.Fprintf(&b, `"/><text x="%d" y="%d" fill="%s">%s</text>`+"\n", width-right+8, top+14*i+10, color, html.EscapeString(l.name))
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// round is a step of 1, 2 or 5 at a power of ten, at least v.
func round(v float64) float64 {
	ten := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*ten >= v {
			return m * ten
		}
	}
	return 10 * ten
}
