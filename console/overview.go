// This file prepares the first page's data.

package console

import (
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// overviewData is the data of the first page.
type overviewData struct {
	Status
	PagesSpark, RateSpark, WaitingSpark, FailedSpark template.HTML

	HostsChart, WaitingChart, GapChart, AnswerChart template.HTML

	Windows     []window
	Layers      []layer
	Due         []HostRow
	MemoryShare int // percent of the budget
	Mean        float64
	FailedShare float64
	More        int // problems not shown
	Settings    []Setting

	CanStop, CanCheckpoint bool

	Served                  bool // clients take leases
	Crawls                  []ServedCrawl
	Clients                 []ServedClient
	MoreCrawls, MoreClients int
}

// window is the period that a chart shows.
type window struct {
	Name, Query string
	Chosen      bool
	d           time.Duration
}

// layer is a legend entry of the stacked chart.
type layer struct {
	Class, Name string
	Now         int64
}

// layerClasses are the CSS classes, by hostState.
var layerClasses = [numStates]string{"s-fetching", "s-ready", "s-pausing", "s-slowed", "s-probed", "s-held"}

// shownProblems is how many failing hosts the first page shows.
const shownProblems = 6

func (c *Console) overview(r *http.Request) (any, error) {
	x := overviewData{
		Status: c.status(r.Context()), CanStop: c.o.Stop != nil, CanCheckpoint: c.o.Checkpoint != nil, Settings: c.o.Settings,
		Windows: []window{{Name: "5 min", Query: "5min", d: 5 * time.Minute}, {Name: "1 h", Query: "1h", d: time.Hour}, {Name: "all", Query: "all"}},
	}
	x.served(&c.o)
	shown := max(0, slices.IndexFunc(x.Windows, func(w window) bool { return w.Query == r.FormValue("window") }))
	x.Windows[shown].Chosen = true
	x.sparks(c.history.within(5 * time.Minute))
	x.hostsChart(c.history.within(x.Windows[shown].d), x.Windows[shown].Name)

	by := []bar{}
	if x.Immediate > 0 {
		by = append(by, bar{"now", x.Immediate, "accent"})
	}
	for i, n := range slices.Backward(x.WaitingBy) {
		if n > 0 {
			by = append(by, bar{"priority " + strconv.Itoa(i+1), n, "accent"})
		}
	}
	if len(by) > 0 {
		x.WaitingChart = bars("URLs that wait, by priority, the highest first", by)
	}
	x.GapChart = gapChart(x.Gaps)
	x.AnswerChart = answerChart(x.Traffic.Answers)
	next, _ := c.views.Upcoming(r.Context(), 8, false) // a closed frontier yields none
	for _, u := range next {
		x.Due = append(x.Due, c.hostRow(u.Host))
	}
	if x.MemoryBudget > 0 {
		x.MemoryShare = int(100 * x.Memory / x.MemoryBudget)
	}
	if x.Running > 0 {
		x.Mean = float64(x.Pages) / x.Running
	}
	if x.Traffic.AllIn > 0 {
		x.FailedShare = float64(x.Traffic.FailedIn) / float64(x.Traffic.AllIn)
	}
	x.Problems = x.Problems[:min(len(x.Problems), shownProblems)]
	x.More = x.ProblemHosts - len(x.Problems)
	return x, nil
}

// sparks draws the sparklines.
func (x *overviewData) sparks(all []sample) {
	all = thin(all, 60)
	var pages, rate, waiting, failed []float64
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		d := b.at.Sub(a.at)
		pages, waiting = append(pages, float64(b.pages-all[0].pages)), append(waiting, float64(b.waiting))
		rate, failed = append(rate, per(a.pages, b.pages, d)), append(failed, per(a.wrong, b.wrong, d))
	}
	x.PagesSpark = spark("pages fetched, over the last minutes", "accent", pages)
	x.RateSpark = spark("pages a second, over the last minutes", "accent", rate)
	x.WaitingSpark = spark("URLs that wait, over the last minutes", "accent", waiting)
	class := "dim" // a flat line at 0 must not look like an alarm
	if slices.ContainsFunc(failed, func(n float64) bool { return n > 0 }) {
		class = "bad"
	}
	x.FailedSpark = spark("failed requests a second, over the last minutes", class, failed)
}

// hostsChart draws hosts by state over time.
func (x *overviewData) hostsChart(all []sample, name string) {
	var moments []moment
	for part := range slices.Chunk(all, max(1, (len(all)+149)/150)) {
		m := moment{part[len(part)-1].at, make([]float64, numStates)}
		for _, s := range part {
			for i, n := range s.states.n {
				m.layers[i] += float64(n) / float64(len(part))
			}
		}
		moments = append(moments, m)
	}
	now := hostStates{}
	if len(all) > 0 {
		now = all[len(all)-1].states
	}
	for i, n := range now.n {
		x.Layers = append(x.Layers, layer{layerClasses[i], stateNames[i], n})
	}
	said := fmt.Sprintf("hosts that have URLs, by what they do, %s; now", name)
	for _, l := range x.Layers {
		said += fmt.Sprintf(" %d %s", l.Now, l.Name)
	}
	x.HostsChart = stack(said, layerClasses[:], stateNames[:], moments)
}

func gapChart(g Gaps) template.HTML {
	if len(g.Counts) == 0 {
		return ""
	}
	all := []bar{{"too early", g.Counts[0], "bad"}}
	for i, n := range g.Counts[1:] {
		name := "more"
		if i+1 < len(g.Bounds) {
			name = "to " + strconv.FormatFloat(g.Bounds[i+1], 'g', -1, 64) + " times"
		}
		all = append(all, bar{name, n, "accent"})
	}
	return bars("gaps kept between contacts with a host, as multiples of the gap owed", all)
}

// shownAnswers is how many statuses the first page shows.
const shownAnswers = 8

func answerChart(answers []Answer) template.HTML {
	if len(answers) == 0 {
		return ""
	}
	var all []bar
	var others int64
	for i, a := range answers {
		name, class := strconv.Itoa(a.Status), "good"
		switch {
		case i >= shownAnswers:
			others += a.Count
			continue
		case a.Status == 0:
			name, class = "no answer", "bad"
		case a.Status >= 500 || a.Status == http.StatusTooManyRequests:
			class = "bad"
		case a.Status >= 400:
			class = "warn"
		case a.Status >= 300:
			class = "dim"
		}
		all = append(all, bar{name, a.Count, class})
	}
	if others > 0 {
		all = append(all, bar{"others", others, "dim"})
	}
	return bars("requests by the status of the answer", all)
}
