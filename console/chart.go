// This file draws charts as SVG, in the colours of the page's style sheet.

package console

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	chartWidth, chartHeight = 760.0, 220.0
	left, bottom, top       = 44.0, 24.0, 10.0
)

// spark draws a small line chart without axes. said is its text for screen readers.
func spark(said, class string, values []float64) template.HTML {
	const w, h = 240.0, 44.0
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="spark %s" viewBox="0 0 %.0f %.0f" preserveAspectRatio="none" role="img" aria-label="%s">`, class, w, h, template.HTMLEscapeString(said))
	if len(values) > 1 {
		most := slices.Max(values)
		if most <= 0 {
			most = 1
		}
		var line strings.Builder
		for i, v := range values {
			fmt.Fprintf(&line, "%.1f,%.1f ", float64(i)/float64(len(values)-1)*w, 3+(1-v/most)*(h-5))
		}
		fmt.Fprintf(&b, `<polygon class="under" points="0,%.0f %s%.0f,%.0f"/><polyline class="over" points="%s"/>`, h, line.String(), w, h, line.String())
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // numbers and escaped text only
}

// moment is a column of a stacked chart: each layer's average until a time, from the bottom.
type moment struct {
	at     time.Time
	layers []float64
}

// stack draws a chart of stacked layers over time; classes and names describe the layers. Each moment has
// a tooltip with its numbers.
func stack(said string, classes, names []string, all []moment) template.HTML {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(said))
	most := 0.0
	for _, m := range all {
		sum := 0.0
		for _, n := range m.layers {
			sum += n
		}
		most = max(most, sum)
	}
	most = roundUp(most)
	y := func(v float64) float64 { return top + (1-v/most)*(chartHeight-top-bottom) }
	ticks := []float64{0, .5, 1}
	if int64(most)%2 != 0 { // so that the middle label is a whole number
		ticks = []float64{0, 1}
	}
	for _, share := range ticks {
		fmt.Fprintf(&b, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/><text class="tick end" x="%.0f" y="%.1f">%s</text>`,
			left, chartWidth, y(share*most), y(share*most), left-8, y(share*most)+4, short(share*most))
	}
	if len(all) > 1 {
		from, to := all[0].at, all[len(all)-1].at
		x := func(t time.Time) float64 {
			return left + float64(t.Sub(from))/float64(max(1, to.Sub(from)))*(chartWidth-left)
		}
		below := make([]float64, len(all))
		for layer, class := range classes {
			var up, down strings.Builder
			for i, m := range all {
				fmt.Fprintf(&up, "%.1f,%.1f ", x(m.at), y(below[i]+m.layers[layer]))
			}
			for i, m := range slices.Backward(all) {
				fmt.Fprintf(&down, "%.1f,%.1f ", x(m.at), y(below[i]))
				below[i] += m.layers[layer]
			}
			fmt.Fprintf(&b, `<polygon class="layer %s" points="%s%s"/>`, class, up.String(), down.String())
		}
		for i, m := range all {
			begin, end := x(m.at), chartWidth
			if i+1 < len(all) {
				end = x(all[i+1].at)
			}
			parts := []string{Ago(to.Sub(m.at).Round(time.Second)) + " ago"}
			if i == len(all)-1 {
				parts[0], begin = "now", begin-2
			}
			for layer, n := range m.layers {
				parts = append(parts, names[layer]+" "+short(n))
			}
			fmt.Fprintf(&b, `<rect class="hit" x="%.1f" y="%.0f" width="%.1f" height="%.0f"><title>%s</title></rect>`,
				begin, top, max(1, end-begin), chartHeight-top-bottom, template.HTMLEscapeString(strings.Join(parts, " · ")))
		}
		fmt.Fprintf(&b, `<text class="tick" x="%.0f" y="%.0f">%s ago</text><text class="tick end" x="%.0f" y="%.0f">now</text>`,
			left, chartHeight-6, Ago(to.Sub(from).Round(time.Second)), chartWidth, chartHeight-6)
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // numbers and escaped text only
}

// bar is one bar of a chart.
type bar struct {
	name  string
	value int64
	class string
}

// bars draws one line per bar: name, bar, value.
func bars(said string, all []bar) template.HTML {
	const w, name, value, high = 420.0, 92.0, 64.0, 22.0
	most := int64(1)
	for _, x := range all {
		most = max(most, x.value)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="bars" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, w, high*float64(len(all)), template.HTMLEscapeString(said))
	for i, x := range all {
		y := float64(i) * high
		long := float64(x.value) / float64(most) * (w - name - value)
		if x.value > 0 {
			long = max(long, 2)
		}
		fmt.Fprintf(&b, `<text class="tick" x="0" y="%.1f">%s</text><rect class="bar %s" x="%.0f" y="%.1f" width="%.1f" height="10" rx="2"/><text class="tick end strong" x="%.0f" y="%.1f">%s</text>`,
			y+15, template.HTMLEscapeString(x.name), x.class, name, y+6, long, w, y+15, short(float64(x.value)))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()) // numbers and escaped text only
}

// roundUp returns the next of 1, 2, 5, 10, 20, 50, ... at or above x.
func roundUp(x float64) float64 {
	if x <= 1 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, k := range []float64{1, 2, 3, 4, 5, 6, 8} {
		if x <= k*unit {
			return k * unit
		}
	}
	return 10 * unit
}

// short formats a number in few characters: 1.5k.
func short(x float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= u.size {
			return strings.TrimSuffix(fmt.Sprintf("%.1f", x/u.size), ".0") + u.name
		}
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0")
}
