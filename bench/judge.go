// This file compares the measured values with the table.

package main

import (
	"math"
	"strings"
)

// verdicts from worst to best.
const (
	notRun = iota
	missed
	musts
	aims
)

var verdictNames = [...]string{"not run", "MISSED", "must", "aim"}

// judged is a line with its measured value.
type judged struct {
	What     string `json:"what"`
	Measured string `json:"measured"`
	Must     string `json:"must"`
	Aim      string `json:"aim"`
	Verdict  string `json:"verdict"`
}

// judge fills the table, and marks the measures that are in it.
func (rep *report) judge() []judged {
	f, at := figures{}, map[string]int{}
	for i, m := range rep.Measures {
		f[m.id()], at[m.id()] = m.Value, i
	}
	var out []judged
	for _, l := range table {
		verdict := aims
		var cells []string
		for _, g := range l.goals {
			if g.only != nil && !g.only(rep.Config) {
				continue
			}
			v, unit := math.NaN(), ""
			if i, ok := at[g.id]; ok {
				v, unit = rep.Measures[i].Value, rep.Measures[i].Unit
			}
			if g.value != nil {
				v = g.value(f)
			}
			if math.IsNaN(v) {
				continue
			}
			cell := show(v, unit)
			if g.label != "" {
				cell += " " + g.label
			}
			got := g.verdict(v, f)
			if !g.advisory {
				verdict = min(verdict, got)
				if len(l.goals) > 1 {
					cell += " (" + verdictNames[got] + ")"
				}
			}
			cells = append(cells, cell)
			if i, ok := at[g.id]; ok && g.must != 0 {
				ok := got >= musts
				must, aim := g.mustOf(f), g.aim
				rep.Measures[i].Must, rep.Measures[i].Aim, rep.Measures[i].OK = &must, &aim, &ok
			}
		}
		if len(cells) == 0 {
			verdict = notRun
		}
		out = append(out, judged{l.what, strings.Join(cells, ", "), l.must, l.aim, verdictNames[verdict]})
	}
	return out
}

func (g goal) mustOf(f figures) float64 {
	if g.mustBe != nil {
		return g.mustBe(f)
	}
	return g.must
}

func (g goal) verdict(v float64, f figures) int {
	must := g.mustOf(f)
	switch {
	case g.atLeast && v >= g.aim, !g.atLeast && v <= g.aim:
		return aims
	case g.atLeast && v >= must, !g.atLeast && v <= must:
		return musts
	}
	return missed
}
