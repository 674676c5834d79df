// This file shows the frontier to a browser. Pages are whole without JavaScript; with it
// what is marked as live is fetched anew every two seconds.

package console

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed page
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"count": Count,
	"size":  Size,
	"ago":   func(seconds float64) string { return Ago(time.Duration(seconds * float64(time.Second))) },
	"in":    in,
	"short": short,
	"rule":  ruleWords,
	"part":  Percent,
	"digit": Digits,
	"clock": func(t time.Time) string { return t.Format("15:04:05") },
}).ParseFS(files, "page/*.html"))

// in is the time until t, in words.
func in(t *time.Time) string {
	switch {
	case t == nil:
		return ""
	case time.Until(*t) <= 0:
		return "now"
	}
	return "in " + Ago(time.Until(*t))
}

// view is what a template gets.
type view struct {
	Title string // of the crawl
	Name  string // of the page
	Path  string // to come back to
	Said  string // what the last action did
	Wrong string // or why it did not
	Data  any
}

func (c *Console) pages(mux *http.ServeMux) {
	show := func(path, file, name string, data func(*http.Request) (any, error)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			x, err := data(r)
			c.show(w, r, file, name, x, err)
		})
	}
	show("/{$}", "overview.html", "Overview", c.overview)
	show("/hosts", "hosts.html", "Hosts", c.hostsPage)
	show("/host", "host.html", "Host", c.host)
	show("/urls", "urls.html", "URLs", c.urlsPage)
	show("/url", "url.html", "URL", c.url)
	show("/rules", "rules.html", "Rules", c.rulesPage)
	mux.Handle("POST /do", c.tokened(c.form, func(w http.ResponseWriter, r *http.Request) {
		c.show(w, r, "wrong.html", "Not done", nil, errToken)
	}))
	mux.Handle("POST /enter", c.tokened(c.enter, func(w http.ResponseWriter, r *http.Request) {
		c.show(w, r, "enter.html", "Token", true, nil)
	}))
	for _, f := range assets {
		mux.HandleFunc("GET "+f, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page"+f) })
	}
}

// assets are files that say nothing of the crawl.
var assets = []string{"/style.css", "/live.js"}

// show answers with a page. What fails half way is not sent.
func (c *Console) show(w http.ResponseWriter, r *http.Request, file, name string, data any, err error) {
	code := http.StatusOK
	v := view{Title: c.o.Title, Name: name, Path: r.URL.RequestURI(), Said: c.told.text(r.FormValue("said")), Data: data}
	switch {
	case err != nil:
		code, file, v.Wrong = statusOf(err), "wrong.html", err.Error()
	case file == "enter.html":
		code = http.StatusUnauthorized
		if back := backOf(r); r.Method == http.MethodPost {
			v.Path = back.String()
		}
	}
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, file, v); err != nil {
		c.log.Error("a page of the console failed", "page", name, "error", err)
		http.Error(w, "the page failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = b.WriteTo(w) // a client that is gone
}

// overviewData is what the first page shows.
type overviewData struct {
	Status
	RateChart, WaitingChart, GapChart template.HTML
	Due                               []HostRow
	MemoryShare                       int // per cent of the budget
}

func (c *Console) overview(r *http.Request) (any, error) {
	x := overviewData{Status: c.status()}
	var out, failed []float64
	for _, m := range x.Rates {
		out, failed = append(out, m.HandedOut), append(failed, m.Failed)
	}
	from := ""
	if len(x.Rates) > 0 {
		from = Ago(x.Now.Sub(x.Rates[0].At).Round(time.Second)) + " ago"
	}
	x.RateChart = lines(fmt.Sprintf("handed out each second, now %s, and failures", short(x.HandedOutPerSecond)), from, "now",
		series{"a", out}, series{"b", failed})
	by := []bar{{"now", x.Immediate, "b"}}
	for i := len(x.WaitingBy) - 1; i >= 0; i-- {
		by = append(by, bar{strconv.Itoa(i + 1), x.WaitingBy[i], "a"})
	}
	x.WaitingChart = bars("URLs that wait, by priority, the highest first", by)
	x.GapChart = gapChart(x.Gaps)
	next, _ := c.f.Upcoming(r.Context(), 12, false) // a frontier that is closed has none
	for _, u := range next {
		x.Due = append(x.Due, hostRow(u.Host))
	}
	if x.MemoryBudget > 0 {
		x.MemoryShare = int(100 * x.Memory / x.MemoryBudget)
	}
	return x, nil
}

func gapChart(g Gaps) template.HTML {
	if len(g.Counts) == 0 {
		return ""
	}
	all := []bar{{"below 1", g.Counts[0], "b"}}
	for i, n := range g.Counts[1:] {
		name := "more"
		if i+1 < len(g.Bounds) {
			name = "to " + strconv.FormatFloat(g.Bounds[i+1], 'g', -1, 64)
		}
		all = append(all, bar{name, n, "a"})
	}
	return bars("gaps kept between contacts with a host, as multiples of the gap owed", all)
}

// hostsData is what the list of hosts shows.
type hostsData struct {
	HostList
	Scope, Reason, Match, Sort string
	Reasons                    []string
	NextPage                   string
}

func (c *Console) hostsPage(r *http.Request) (any, error) {
	x, err := c.hosts(r)
	if err != nil {
		return nil, err
	}
	d := hostsData{HostList: x.(HostList), Scope: r.FormValue("scope"), Reason: r.FormValue("reason"), Match: r.FormValue("match"), Sort: r.FormValue("sort"), Reasons: reasonNames()}
	d.NextPage = next(r, d.Next)
	return d, nil
}

// urlsData is what the list of URLs shows.
type urlsData struct {
	URLList
	Scope    string
	NextPage string
}

func (c *Console) urlsPage(r *http.Request) (any, error) {
	x, err := c.urls(r)
	if err != nil {
		return nil, err
	}
	d := urlsData{URLList: x.(URLList), Scope: r.FormValue("scope")}
	d.NextPage = next(r, d.Next)
	return d, nil
}

// maxRulesPage is how many rules a page shows.
const maxRulesPage = 500

func (c *Console) rulesPage(r *http.Request) (any, error) {
	x, err := c.rules(r)
	if err != nil {
		return nil, err
	}
	l := x.(RuleList)
	if len(l.Rules) > maxRulesPage {
		l.Rules, l.More = l.Rules[:maxRulesPage], true
	}
	return l, nil
}

// next is the address of the next part.
func next(r *http.Request, after string) string {
	if after == "" {
		return ""
	}
	q := r.URL.Query()
	q.Set("after", after)
	q.Del("said")
	return r.URL.Path + "?" + q.Encode()
}

// form carries out what a form asks for, and goes back to its page.
func (c *Console) form(w http.ResponseWriter, r *http.Request) {
	a, err := formAction(r.PostForm)
	var done Result
	if err == nil {
		done, err = c.act(r.Context(), a)
		err = refused(err)
	}
	if err != nil {
		c.show(w, r, "wrong.html", "Not done", nil, err)
		return
	}
	back := backOf(r)
	q := back.Query()
	q.Set("said", c.told.keep(done.Said))
	http.Redirect(w, r, (&url.URL{Path: back.Path, RawQuery: q.Encode()}).String(), http.StatusSeeOther)
}

// backOf is the page of this console that a form leads back to.
func backOf(r *http.Request) *url.URL {
	back, err := url.Parse(r.PostForm.Get("back"))
	if err != nil || back.IsAbs() || back.Host != "" || back.Opaque != "" || !strings.HasPrefix(back.Path, "/") || strings.HasPrefix(back.Path, "//") {
		return &url.URL{Path: "/"}
	}
	return &url.URL{Path: back.Path, RawQuery: back.RawQuery}
}

// formAction reads an Action from a form's fields.
func formAction(f url.Values) (Action, error) {
	a := Action{Do: f.Get("do"), Scope: f.Get("scope")}
	var errs []error
	duration := func(name string) Duration {
		if f.Get(name) == "" {
			return 0
		}
		d, err := time.ParseDuration(f.Get(name))
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: want a time as in 90s or 2h", name))
		}
		return Duration(d)
	}
	switch a.Do {
	case "block":
		a.For = duration("for")
	case "delay":
		if d := duration("fixed"); f.Get("fixed") != "" {
			a.Delay = &Delay{Fixed: &d}
		}
	case "priority", "concurrency":
		n, err := strconv.Atoi(f.Get("n"))
		if err != nil {
			errs = append(errs, errors.New("n: want a number"))
		}
		a.N = n
	case "crawl-now":
		a.URLs = []string{f.Get("url")}
		if n, err := strconv.ParseUint(f.Get("crawl"), 10, 32); err == nil {
			a.Crawl = uint32(n)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return a, fmt.Errorf("%w: %w", ErrAction, err)
	}
	return a, nil
}

// told is what the last actions did, by number: a page that a stranger links to cannot
// have it say something else.
type told struct {
	mu    sync.Mutex
	first int
	texts []string
}

const maxTold = 32

func (t *told) keep(text string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.texts) == maxTold {
		t.texts = t.texts[1:]
		t.first++
	}
	t.texts = append(t.texts, text)
	return strconv.Itoa(t.first + len(t.texts) - 1)
}

func (t *told) text(number string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, err := strconv.Atoi(number)
	if i -= t.first; err != nil || i < 0 || i >= len(t.texts) {
		return ""
	}
	return t.texts[i]
}
