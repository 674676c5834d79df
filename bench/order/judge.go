// This file shows what was measured, and compares it with what is demanded.

package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// measured are the results of each set, by graph and order.
type measured map[string]map[string][]result

// mean is that of a figure over the sets, and its standard error; NaN if the order was not measured.
func (m measured) mean(graph, order string, figure func(set int, r *result) float64) (mean, err float64) {
	rs := m[graph][order]
	n, squares := float64(len(rs)), 0.
	for i := range rs {
		x := figure(i, &rs[i])
		mean += x / n
		squares += x * x / n
	}
	if n == 0 {
		return math.NaN(), math.NaN()
	}
	return mean, math.Sqrt(max(0, squares-mean*mean) / max(1, n-1))
}

// worth is the percentage of the PageRank that was fetched at a mark.
func (m measured) worth(graph, order string, mark int) float64 {
	x, _ := m.mean(graph, order, func(_ int, r *result) float64 { return 100 * r.worth[mark] })
	return x
}

func (m measured) spam(graph, order string, mark int) float64 {
	x, _ := m.mean(graph, order, func(_ int, r *result) float64 { return 100 * r.spam[mark] })
	return x
}

// behind is the most by which an order is behind another, over graphs and marks; NaN if it was not measured.
func (m measured) behind(order, other string, graphs string, marks ...int) float64 {
	most := math.NaN()
	for _, graph := range strings.Fields(graphs) {
		for _, mark := range marks {
			if x := m.worth(graph, other, mark) - m.worth(graph, order, mark); !math.IsNaN(x) && !(x <= most) {
				most = x
			}
		}
	}
	return most
}

func (m measured) print(w io.Writer, graph string, rows []order) {
	fmt.Fprintln(w, "| order | PageRank at 1 / 5 / 10 / 30 / 50 % | over round robin at 10 % | spam at 1 / 5 / 10 / 30 / 50 % | records read, moved for each URL | CPU a page | bytes a URL | takes |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, o := range rows {
		var worth, spam []string
		for mark := range marks {
			worth = append(worth, fmt.Sprintf("%.1f", m.worth(graph, o.name, mark)))
			spam = append(spam, fmt.Sprintf("%.0f", m.spam(graph, o.name, mark)))
		}
		of := func(figure func(r *result) float64) float64 {
			x, _ := m.mean(graph, o.name, func(_ int, r *result) float64 { return figure(r) })
			return x
		}
		over := "-"
		if plain := m[graph]["round robin"]; len(plain) > 0 {
			x, e := m.mean(graph, o.name, func(set int, r *result) float64 { return 100 * (r.worth[at10] - plain[set].worth[at10]) })
			over = fmt.Sprintf("%+.1f (%.1f)", x, e)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s | %.1f, %.2f | %v | %.0f | %v |\n", o.name, strings.Join(worth, " / "), over, strings.Join(spam, " / "),
			of(func(r *result) float64 { return r.read }), of(func(r *result) float64 { return r.moves }),
			time.Duration(of(func(r *result) float64 { return float64(r.cpu) })).Round(100*time.Nanosecond),
			of(func(r *result) float64 { return r.memory }),
			time.Duration(of(func(r *result) float64 { return float64(r.took) })).Round(10*time.Millisecond))
	}
}

const at5, at10, at30, at50 = 1, 2, 3, 4 // of marks

// judge prints what is demanded beside what was measured.
func (m measured) judge(w io.Writer) {
	const all = "docs cnr cal att"
	over := func(graph string) float64 { return m.behind("default", "links", graph, at10) }
	fmt.Fprint(w, "\n| demanded | must | aim | measured | |\n|---|---|---|---|---|\n")
	for _, g := range []struct {
		what      string
		must, aim float64 // negative: at least so much
		measured  float64
	}{
		{"links behind in-links exact, most at 5, 10, 30 %", 1.5, 0.7, m.behind("links", "in-links exact", all, at5, at10, at30)},
		{"trust behind trust exact, most at 5, 10, 30 %", 1.5, 0.7, m.behind("trust", "trust exact", all, at5, at10, at30)},
		{"docs: links over the default at 10 %", -4, -6, over("docs")},
		{"cnr: links over the default at 10 %", -4, -6, over("cnr")},
		{"cal: links over the default at 10 %", -8, -10, over("cal")},
		{"att: links over the default at 10 %", -2, -4, over("att")},
		{"links below round robin, most at 10 and 30 %", 1, 0, m.behind("links", "round robin", all, at10, at30)},
		{"att: spam in the first 10 % with trust", 6, 4, m.spam("att", "trust", at10)},
		{"cal: spam in the first 10 % with trust", 9, 6, m.spam("cal", "trust", at10)},
		{"cal: spam in the first 50 % with links and useful shares", 12, 9, m.spam("cal", "links useful", at50)},
		{"points that useful shares cost docs and cnr, most", 0.5, 0, m.behind("links useful", "links", "docs cnr", 0, at5, at10, at30, at50)},
		{"links behind trust at 10 %, most", math.NaN(), 1, m.behind("links", "trust", all, at10)},
		{"trust behind links at 10 %, most", math.NaN(), 1, m.behind("trust", "links", all, at10)},
	} {
		if math.IsNaN(g.measured) {
			continue
		}
		sign, is, verdict := "<=", g.measured, "**falls short**"
		if g.must < 0 {
			sign, is = ">=", -is
		}
		switch {
		case is <= g.aim:
			verdict = "aim"
		case is <= g.must:
			verdict = "must"
		}
		must := fmt.Sprintf("%s %g", sign, math.Abs(g.must))
		if math.IsNaN(g.must) {
			must = "-"
		}
		fmt.Fprintf(w, "| %s | %s | %g | %.1f | %s |\n", g.what, must, math.Abs(g.aim), g.measured, verdict)
	}
}
