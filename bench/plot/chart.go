// This file draws lines in a frame with two axes, as SVG.

package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

const (
	panelWidth, panelHeight = 640, 300
	left, right             = 62, 130 // of the frame; the legend is at the right
	top, bottom             = 26, 28
)

var colors = [...]string{"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#e377c2", "#17becf", "#7f7f7f"}

type line struct {
	name   string
	points [][2]float64
}

// chart is a panel in the making.
type chart struct {
	logarithmic bool // the upright axis
	lines       []line
}

// add adds a line that has points.
func (c *chart) add(l line) {
	if len(l.points) > 0 {
		c.lines = append(c.lines, l)
	}
}

// axis maps values to pixels.
type axis struct {
	low, high   float64
	from, to    float64
	logarithmic bool
}

func (a axis) at(v float64) float64 {
	low, high := a.low, a.high
	if a.logarithmic {
		low, high, v = math.Log10(low), math.Log10(high), math.Log10(v)
	}
	return a.from + (v-low)/(high-low)*(a.to-a.from)
}

// ticks are round values within an axis.
func (a axis) ticks() []float64 {
	var out []float64
	if a.logarithmic {
		for v := math.Pow(10, math.Ceil(math.Log10(a.low)-1e-9)); v <= a.high*1.001; v *= 10 {
			out = append(out, v)
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10((a.high-a.low)/4)))
	for _, m := range []float64{5, 2} {
		if (a.high-a.low)/(step*m) >= 3 {
			step *= m
			break
		}
	}
	for v := math.Ceil(a.low/step) * step; v <= a.high*1.001; v += step {
		out = append(out, v)
	}
	return out
}

// axes reach over all points, and from 0 where that can be.
func (c *chart) axes(x0, y0 float64) (x, y axis) {
	x = axis{high: 1e-9, from: x0 + left, to: x0 + panelWidth - right}
	y = axis{high: 1e-9, from: y0 + panelHeight - bottom, to: y0 + top, logarithmic: c.logarithmic}
	if c.logarithmic {
		y.low = math.Inf(1)
	}
	for _, l := range c.lines {
		for _, p := range l.points {
			x.high, y.high = max(x.high, p[0]), max(y.high, p[1])
			if c.logarithmic {
				y.low = min(y.low, p[1])
			}
		}
	}
	if c.logarithmic {
		y.low = math.Pow(10, math.Floor(math.Log10(y.low)))
		y.high = max(math.Pow(10, math.Ceil(math.Log10(y.high))), y.low*10)
	} else {
		y.high *= 1.05
	}
	return x, y
}

func (c *chart) draw(b *strings.Builder, x0, y0 int, title string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" font-weight="bold">%s</text>`+"\n", x0+left, y0+16, html.EscapeString(title))
	if len(c.lines) == 0 {
		fmt.Fprintf(b, `<text x="%d" y="%d" fill="gray">nothing was measured</text>`+"\n", x0+left, y0+panelHeight/2)
		return
	}
	x, y := c.axes(float64(x0), float64(y0))
	for _, v := range y.ticks() {
		fmt.Fprintf(b, `<path d="M%.1f %.1fH%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="end">%s</text>`+"\n",
			x.from, y.at(v), x.to, x.from-4, y.at(v)+4, short(v))
	}
	for _, v := range x.ticks() {
		fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1f" stroke="#eee"/><text x="%.1f" y="%.1f" text-anchor="middle">%s</text>`+"\n",
			x.at(v), y.from, y.to, x.at(v), y.from+14, short(v))
	}
	fmt.Fprintf(b, `<path d="M%.1f %.1fV%.1fH%.1f" stroke="black" fill="none"/>`+"\n", x.from, y.to, y.from, x.to)
	for i, l := range c.lines {
		color := colors[i%len(colors)]
		var d strings.Builder
		for j, p := range l.points {
			fmt.Fprintf(&d, "%c%.1f %.1f", "ML"[min(j, 1)], x.at(p[0]), y.at(p[1]))
		}
		fmt.Fprintf(b, `<path d="%s" stroke="%s" fill="none"/>`+"\n", d.String(), color)
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" fill="%s">%s</text>`+"\n", x.to+6, y.to+10+14*float64(i), color, html.EscapeString(l.name))
	}
}

// short writes a value of an axis.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 1e6:
		return fmt.Sprintf("%.4gM", v/1e6)
	case a >= 1e4:
		return fmt.Sprintf("%.4gk", v/1e3)
	}
	return fmt.Sprintf("%.4g", v)
}
