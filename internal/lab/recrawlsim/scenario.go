// This file lists the scenarios.

package recrawlsim

// Scenarios returns the six scenarios of the acceptance test: N pages on N/40 hosts, a budget of
// N/10 fetches a day, and 240 days, the second half of which is scored.
//
// Mean lifetimes are those of WebFountain's Table 2, from 1 to 600 days. "web" has weights, a tenth
// of spam that differs at each fetch and looks no worse, 40 % of pages that change in office hours,
// 15 % nearly periodic, 5 % with lifetimes of an hour to a day.
func Scenarios(pages int, seed uint64) []Scenario {
	n := float64(pages)
	plain := Scenario{Name: "plain", Pages: pages, Hosts: max(1, pages/40), Budget: n / 10, Length: 240, Seed: seed}
	weights := plain
	weights.Name, weights.Weights = "weights", true
	web := weights
	web.Name, web.Kinds, web.Spam = "web", true, 0.1
	tight := web
	tight.Name, tight.Budget = "tight", n/30
	polite := web
	polite.Name, polite.HostMost = "polite", web.Budget/50
	drift := web
	drift.Name, drift.Drift = "drift", 120
	return []Scenario{plain, weights, web, tight, polite, drift}
}

// Attacks are the scenarios with adverse conditions: half of the pages spam of ten times the
// weight, a Last-Modified that always lies, a budget three times as high and then a third, weights
// that rise with the rates, and sites of spam with 30 % of the pages.
func Attacks(pages int, seed uint64) []Scenario {
	web := Scenarios(pages, seed)[2]
	flood := web
	flood.Name, flood.Spam, flood.SpamPays = "flood", 0.5, 10
	lies := web
	lies.Name, lies.Lies = "lies", true
	steps := web
	steps.Name, steps.Steps = "steps", []Step{{60, 3}, {100, 1. / 3}, {140, 1}}
	opposed := web
	opposed.Name, opposed.Opposed = "opposed", true
	spam30 := web
	spam30.Name, spam30.Spam, spam30.SpamSites = "spam30", 0.3, true
	return []Scenario{flood, lies, steps, opposed, spam30}
}
