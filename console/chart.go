// This file draws figures as SVG, in the colours of the page's style sheet.

package console

import (
	"fmt"
	"html/template"
	"math"
	"strings"
)

// series is a line of a chart.
type series struct {
	class  string // of the style sheet
	values []float64
}

const (
	chartWidth, chartHeight = 600.0, 160.0
	left, bottom, top       = 48.0, 18.0, 8.0
)

// lines draws series of equally many values over the same time. Said is what a reader
// hears who does not see it.
func lines(said, from, to string, all ...series) template.HTML {
	most := 0.0
	for _, s := range all {
		for _, v := range s.values {
			most = max(most, v)
		}
	}
	most = roundUp(most)
	var b strings.Builder
	open(&b, said)
	for _, share := range []float64{0, .5, 1} {
		y := top + (1-share)*(chartHeight-top-bottom)
		fmt.Fprintf(&b, `<line class="grid" x1="%.0f" x2="%.0f" y1="%.1f" y2="%.1f"/><text class="tick end" x="%.0f" y="%.1f">%s</text>`,
			left, chartWidth, y, y, left-6, y+4, short(most*share))
	}
	for _, s := range all {
		if len(s.values) < 2 {
			continue
		}
		fmt.Fprintf(&b, `<polyline class="line %s" points="`, s.class)
		for i, v := range s.values {
			x := left + float64(i)/float64(len(s.values)-1)*(chartWidth-left)
			fmt.Fprintf(&b, "%.1f,%.1f ", x, top+(1-v/most)*(chartHeight-top-bottom))
		}
		b.WriteString(`"/>`)
	}
	fmt.Fprintf(&b, `<text class="tick" x="%.0f" y="%.0f">%s</text><text class="tick end" x="%.0f" y="%.0f">%s</text></svg>`,
		left, chartHeight-2, template.HTMLEscapeString(from), chartWidth, chartHeight-2, template.HTMLEscapeString(to))
	return template.HTML(b.String()) // of numbers and escaped text alone
}

// bar is one of a chart.
type bar struct {
	name  string
	value int64
	class string
}

// bars draws bars beside each other, with their values above them.
func bars(said string, all []bar) template.HTML {
	most := int64(1)
	for _, x := range all {
		most = max(most, x.value)
	}
	var b strings.Builder
	open(&b, said)
	width := chartWidth / float64(max(1, len(all)))
	for i, x := range all {
		h := float64(x.value) / float64(most) * (chartHeight - bottom - 22)
		if x.value > 0 {
			h = max(h, 1)
		}
		mid := (float64(i) + .5) * width
		fmt.Fprintf(&b, `<rect class="bar %s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, x.class, mid-width*.35, chartHeight-bottom-h, width*.7, h)
		fmt.Fprintf(&b, `<text class="tick mid" x="%.1f" y="%.1f">%s</text>`, mid, chartHeight-bottom-h-4, short(float64(x.value)))
		fmt.Fprintf(&b, `<text class="tick mid" x="%.1f" y="%.0f">%s</text>`, mid, chartHeight-3, template.HTMLEscapeString(x.name))
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

func open(b *strings.Builder, said string) {
	fmt.Fprintf(b, `<svg class="chart" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, chartWidth, chartHeight, template.HTMLEscapeString(said))
}

// roundUp is the next of 1, 2, 5, 10, 20, 50, ... at or above x.
func roundUp(x float64) float64 {
	if x <= 1 || math.IsInf(x, 0) || math.IsNaN(x) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, k := range []float64{1, 2, 5} {
		if x <= k*unit {
			return k * unit
		}
	}
	return 10 * unit
}

// short is a number in few characters: 1.5k.
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
