// This file shows the frontier in a browser. Pages are complete without JavaScript; with it, parts marked
// as live are fetched again every two seconds.

package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/event"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/internal/faults"
)

//go:embed page
var files embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"count": func(n any) string {
		if n, ok := n.(int); ok {
			return Count(int64(n))
		}
		return Count(n.(int64))
	},
	"size":  Size,
	"bytes": func(x float64) string { return Size(int64(x)) },
	"ago":   func(seconds float64) string { return Ago(time.Duration(seconds * float64(time.Second))) },
	"short": short,
	"at":    func(t time.Time) *time.Time { return &t },
	"part":  Percent,
	"digit": Digits,
	"clock": func(t time.Time) string { return t.Format("15:04:05") },
	"stamp": func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"took": func(seconds float64) string {
		return Ago(time.Duration(seconds * float64(time.Second)).Round(time.Millisecond))
	},
	"plural": func(n any, what string) string {
		switch n := n.(type) {
		case int:
			return plural(int64(n), what)
		case int64:
			return plural(n, what)
		}
		return fmt.Sprint(n, " ", what)
	},
	"title": func(s string) string { return strings.ToUpper(s[:min(1, len(s))]) + s[min(1, len(s)):] },
	"level": level,
	"path":  pathOf,
	"state": stateWord, "standing": Standing, "useful": UsefulOf, "ranked": anyRanked,
	"in": untimed, "since": untimed, "age": untimed,
}).ParseFS(files, "page/*.html"))

// untimed stands in for in, since and age, which need a Console's clock.
func untimed(*time.Time) string { return "" }

// in formats the time until t.
func (c *Console) in(t *time.Time) string {
	if t == nil {
		return ""
	}
	if left := t.Sub(c.f.Now()); left > 0 {
		return "in " + Ago(left)
	}
	return "now"
}

// age formats the time since t.
func (c *Console) age(t *time.Time) string {
	if t == nil {
		return ""
	}
	return Ago(max(0, c.f.Now().Sub(*t)).Round(time.Second))
}

// since formats how long ago t was.
func (c *Console) since(t *time.Time) string {
	if t == nil {
		return ""
	}
	return c.age(t) + " ago"
}

// view is the data of a page's template.
type view struct {
	Title string // the crawl's
	Name  string // the page's
	Root  string // relative path to the first page: a proxy may serve the page under a path
	Path  string // where to return to, relative to Root
	Said  string // result of the last action
	Wrong string // or its error
	In    bool   // the browser is signed in
	Open  bool   // or may read without that
	Ends  bool   // the ends page exists
	Lends bool   // the leases page exists, and may be shown
	Live  *Status
	Data  any
}

func (c *Console) pages(mux *http.ServeMux) {
	show := func(at, file, name string, data func(*http.Request) (any, error)) {
		mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) {
			x, err := data(r)
			c.show(w, r, file, name, x, err)
		})
	}
	show("/{$}", "overview.html", "Overview", c.overview)
	show("/hosts", "hosts.html", "Hosts", c.hostsPage)
	show("/host", "host.html", "Host", c.hostPage)
	show("/urls", "urls.html", "URLs", c.urlsPage)
	show("/ends", "ends.html", "Ends", c.endsPage)
	show("/rules", "rules.html", "Rules", c.rulesPage)
	show("/", "", "", func(*http.Request) (any, error) {
		if c.o.Leases != nil {
			return nil, fmt.Errorf("%w; paths of the API begin with /v1/, as in /v1/urls", errNoPage)
		}
		return nil, errNoPage
	})
	mux.HandleFunc("GET /url", c.urlPage)
	mux.HandleFunc("GET /leases", c.leasesPage)
	mux.HandleFunc("GET /enter", func(w http.ResponseWriter, r *http.Request) {
		c.show(w, r, "enter.html", "Sign in", enterData{Action: "enter", Reads: c.mayRead(r)}, nil)
	})
	mux.Handle("POST /do", c.tokened(c.form))
	mux.Handle("POST /enter", c.tokened(func(w http.ResponseWriter, r *http.Request) { lead(w, r, backOf(r), http.StatusSeeOther) })) // tokened sets the cookie
	mux.HandleFunc("POST /leave", c.leave)
	for at, file := range assets {
		mux.HandleFunc("GET "+at, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, "page/"+file) })
	}
}

// assets maps paths to files that reveal nothing about the crawl.
var assets = map[string]string{"/style.css": "style.css", "/live.js": "live.js", "/mark.svg": "mark.svg", "/favicon.ico": "mark.svg"}

var errNoPage = errors.New("there is no such page")

// show responds with a page. If the template fails, it sends none of it.
func (c *Console) show(w http.ResponseWriter, r *http.Request, file, name string, data any, err error) {
	code := http.StatusOK
	v := view{Title: c.o.Title, Name: name, Root: rootOf(r), Path: placeOf(r), Said: c.told.text(r.FormValue("said")), In: c.entered(r), Data: data}
	if r.Method == http.MethodPost {
		v.Path = backOf(r)
	}
	if err != nil {
		code = statusOf(err)
		if file != "enter.html" {
			file, v.Wrong = "wrong.html", plain(err)
			v.Name = "Not done"
			if r.Method == http.MethodGet {
				v.Name = "Not found"
			}
		}
	}
	v.Ends = c.o.Newest != nil
	v.Lends = v.In && c.o.Leases != nil
	if v.Open = v.In || c.mayRead(r); v.Open && code != http.StatusServiceUnavailable {
		if d, ok := data.(overviewData); ok {
			v.Live = &d.Status
		} else {
			s := c.status(r.Context())
			v.Live = &s
		}
	}
	var b bytes.Buffer
	if err := c.templates.ExecuteTemplate(&b, file, v); err != nil {
		c.log.Error("a page of the console failed", "page", name, "error", err)
		http.Error(w, "the page failed", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_, _ = b.WriteTo(w) // fails only if the client disconnected
}

// plain returns an error's text without package names.
func plain(err error) string {
	text := err.Error()
	for _, prefix := range []string{"console: ", "frontier: ", "scope: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	return text
}

// pathOf returns a URL without its scheme and host.
func pathOf(u string) string {
	if _, rest, ok := strings.Cut(u, "://"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
	}
	return u
}

// stateWord describes why a host is not served.
func stateWord(reason string) string { return cmp.Or(stateWords[reason], reason) }

var stateWords = map[string]string{
	inspect.ReasonLeased.String():     "fetching",
	inspect.ReasonTurn.String():       "ready",
	inspect.ReasonBackQueue.String():  "ready",
	inspect.ReasonReading.String():    "ready",
	inspect.ReasonDelay.String():      "delayed",
	inspect.ReasonGroup.String():      "delayed",
	inspect.ReasonReopened.String():   "delayed",
	inspect.ReasonCrawlDelay.String(): "delayed (Crawl-delay)",
	inspect.ReasonRetryAfter.String(): "backing off (Retry-After)",
	inspect.ReasonBackoff.String():    "backing off",
	inspect.ReasonQuarantine.String(): "in quarantine",
	inspect.ReasonNotBefore.String():  "waits for its time",
	inspect.ReasonNothing.String():    "nothing waits",
	inspect.ReasonLimit.String():      "at a limit",
}

// level returns an event's severity: bad, warn, good, or empty.
func level(kind string) string {
	switch kind {
	case event.StoreError.String(), event.HostGivenUp.String():
		return "bad"
	case event.HostBackedOff.String(), event.HostQuarantined.String(), event.URLGivenUp.String(), event.LeaseExpired.String(), event.HostBlocked.String(), event.Stalled.String():
		return "warn"
	case event.HostReturned.String(), event.StoreWorks.String(), event.LimitLifted.String():
		return "good"
	}
	return ""
}

// urlPage shows a URL. Given a host, it redirects to the host's page.
func (c *Console) urlPage(w http.ResponseWriter, r *http.Request) {
	asked := strings.TrimSpace(r.FormValue("url"))
	if s, err := ScopeOf(c.f, asked); err == nil && !strings.ContainsAny(asked, "/ ") && !strings.HasPrefix(asked, "*") {
		name := s.String()
		if _, err := c.views.Host(r.Context(), name); err == nil || !strings.Contains(asked, ":") || c.over(r.Context(), name) {
			lead(w, r, "host?name="+url.QueryEscape(name), http.StatusSeeOther)
			return
		}
	}
	x, err := c.url(r)
	if u, ok := x.(URL); ok && (u.State == "waiting" || u.State == "scheduled") {
		if site, bad := url.Parse(u.URL); bad == nil {
			ends, _ := c.ends(r.Context(), site.Scheme+"://"+site.Host+"/robots.txt")
			if len(ends) > 0 {
				u.Why += c.unread(ends[0])
				x = u
			}
		}
	}
	if err != nil && !strings.Contains(asked, "://") {
		err = &badRequest{fmt.Errorf("%.80q is no URL and no host: want a whole URL, as in https://shop.example/page, or a host, as in shop.example", asked)}
	}
	c.show(w, r, "url.html", "URL", x, err)
}

// hostPage shows a host, and which robots.txt its URLs wait for.
func (c *Console) hostPage(r *http.Request) (any, error) {
	x, err := c.host(r)
	h, ok := x.(Host)
	if err != nil || !ok || c.o.Newest == nil || h.Waiting+h.Scheduled == 0 {
		return x, err
	}
	ctx, stop := context.WithTimeout(r.Context(), countFor)
	defer stop()
	ends, _ := c.o.Newest(ctx, EndsQuery{What: "robots", Host: h.Host, N: maxNear}) // the page is of use without
	for _, e := range ends {
		h.Why += c.unread(e)
	}
	return h, nil
}

// unread says that a robots.txt was not read, if e is an end of such a request.
func (c *Console) unread(e End) string {
	if e.What != "robots" || e.Reason == "" {
		return ""
	}
	name := cmp.Or(e.URL, "robots.txt of its site")
	return fmt.Sprintf("; %s was not read %s ago: status %d, %s", name, Ago(c.f.Now().Sub(e.At)), e.Status, e.Reason)
}

// hostsData is the data of the hosts page.
type hostsData struct {
	HostList
	Scope, Reason, Match, Sort string
	Sunk                       bool
	Reasons                    []string
	NextPage                   string
}

func (c *Console) hostsPage(r *http.Request) (any, error) {
	x, err := c.hosts(r)
	if err != nil {
		return nil, err
	}
	d := hostsData{HostList: x.(HostList), Scope: r.FormValue("scope"), Reason: r.FormValue("reason"), Match: r.FormValue("match"), Sort: r.FormValue("sort"), Reasons: Reasons()}
	d.Sunk, _ = strconv.ParseBool(r.FormValue("sunk"))
	d.NextPage = next(r, d.Next)
	return d, nil
}

// urlsData is the data of the URLs page.
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

// maxRulesPage is the most rules on a page.
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

// next returns the address of the next part.
func next(r *http.Request, after string) string {
	if after == "" {
		return ""
	}
	q := r.URL.Query()
	q.Set("after", after)
	q.Del("said")
	return "?" + q.Encode()
}

// form carries out a form's action, and redirects to the form's page.
func (c *Console) form(w http.ResponseWriter, r *http.Request) {
	a, err := formAction(r.PostForm)
	var done Result
	if err == nil {
		done, err = c.act(r.Context(), a)
		err = refused(err)
	}
	if err != nil {
		c.show(w, r, "", "Not done", nil, err)
		return
	}
	to, query, _ := strings.Cut(backOf(r), "?")
	q, _ := url.ParseQuery(query)
	q.Set("said", c.told.keep(done.Said))
	lead(w, r, to+"?"+q.Encode(), http.StatusSeeOther)
}

// backOf returns the page that a form returns to, relative to the first page; empty: the first page.
func backOf(r *http.Request) string {
	back, err := url.Parse(r.PostForm.Get("back"))
	if err != nil || back.IsAbs() || back.Host != "" || back.Opaque != "" {
		return ""
	}
	to := (&url.URL{Path: path.Clean("/" + back.Path)}).EscapedPath()[1:] // never above the first page
	if q := back.Query(); len(q) > 0 {
		to += "?" + q.Encode()
	}
	return to
}

// rootOf returns the relative path from the requested address to the first page.
func rootOf(r *http.Request) string {
	if deep := strings.Count(r.URL.EscapedPath(), "/") - 1; deep > 0 {
		return strings.Repeat("../", deep)
	}
	return "./"
}

// placeOf returns the requested address relative to the first page.
func placeOf(r *http.Request) string { return strings.TrimLeft(r.URL.RequestURI(), "/") }

// lead redirects to a page, given relative to the first. http.Redirect would make the path absolute,
// which is wrong behind a proxy that strips a path. The leading ./ keeps the target on this host.
func lead(w http.ResponseWriter, r *http.Request, to string, code int) {
	w.Header().Set("Location", rootOf(r)+to)
	w.WriteHeader(code)
}

// tidied redirects unclean paths, as http.ServeMux does, but with relative redirects.
func tidied(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked := r.URL.EscapedPath()
		clean := path.Clean("/" + asked)
		if strings.HasSuffix(asked, "/") && clean != "/" {
			clean += "/"
		}
		if asked == clean {
			h.ServeHTTP(w, r)
			return
		}
		if r.URL.RawQuery != "" {
			clean += "?" + r.URL.RawQuery
		}
		lead(w, r, clean[1:], http.StatusTemporaryRedirect)
	})
}

// formAction reads an Action from a form.
func formAction(f url.Values) (Action, error) {
	a := Action{Do: f.Get("do"), Scope: f.Get("scope"), Lease: f.Get("lease"), Client: f.Get("client")}
	var errs faults.List
	if value := f.Get("value"); value != "" { // the form serves several actions
		for _, name := range []string{"for", "fixed", "n"} {
			f.Set(name, value)
		}
	}
	duration := func(name string) Duration {
		if f.Get(name) == "" {
			return 0
		}
		d, err := time.ParseDuration(f.Get(name))
		errs.If(err != nil, "%s: want a time as in 90s or 2h", name)
		return Duration(d)
	}
	switch a.Do {
	case "block":
		if a.For = duration("for"); a.For == 0 {
			a.Until = &time.Time{} // end the block
		}
	case "delay":
		d := duration("fixed")
		if a.None = f.Get("fixed") == ""; !a.None {
			a.Delay = &Delay{Fixed: &d}
		}
	case "priority", "concurrency", "standing":
		n, err := strconv.Atoi(f.Get("n"))
		errs.If(err != nil, "n: want a number")
		a.N, a.None = n, n == 0 && a.Do != "standing"
	case "crawl-now":
		a.URLs = []string{f.Get("url")}
		if n, err := strconv.ParseUint(f.Get("crawl"), 10, 32); err == nil {
			a.Crawl.Number = uint32(n)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return a, fmt.Errorf("%w: %w", ErrAction, err)
	}
	return a, nil
}

// told holds the results of recent actions by number. A stranger's link can name a number, but not a text
// to show.
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
