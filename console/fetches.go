// This file records requests: the last ones, counts by status, latency, and which hosts fail.

package console

import (
	"cmp"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

const (
	maxFetches = 256
	longError  = 300
)

// Fetch is a completed request, also one for a robots.txt.
type Fetch struct {
	At       time.Time `json:"at"` // when it ended
	Host     string    `json:"host"`
	URL      string    `json:"url"`
	Status   int       `json:"status,omitempty"` // 0: no response
	Bytes    int64     `json:"bytes,omitempty"`  // of the body, as transferred
	Duration float64   `json:"duration_s"`
	Error    string    `json:"error,omitempty"`
	Kind     string    `json:"kind,omitempty"` // of failure, from frontier.Failure or fetch.Class; empty: success
}

// Failed reports whether the host could not, or would not, answer.
func (f Fetch) Failed() bool { return f.Kind != "" }

// What describes the result in a word or two.
func (f Fetch) What() string {
	if f.Status == 0 {
		return f.kindWords()
	}
	return strconv.Itoa(f.Status)
}

// kindWords describes the kind of failure.
func (f Fetch) kindWords() string { return cmp.Or(kindWords[f.Kind], "failed") }

// kindWords describe kinds of failures.
var kindWords = map[string]string{
	"dns":               "name not found",
	"connect":           "no connection",
	"timeout":           "no answer in time",
	"server":            "server error",
	"unavailable":       "unavailable",
	"too many requests": "too many requests",
	"tls":               "no secure connection",
	"cut":               "connection broke",
	"protocol":          "not HTTP",
	"decode":            "unreadable body",
	"blocked":           "address not allowed",
}

// Request records a completed request. Use it as crawler.Options.OnFetch.
func (w *Watch) Request(url string, res *fetch.Result, err error) {
	host, hostErr := frontier.HostName(url)
	if hostErr != nil {
		return
	}
	o := Fetch{At: res.Ended, Host: host, URL: fetch.Redact(url), Status: res.Status, Bytes: res.Bytes, Duration: res.Duration().Seconds(), Kind: kindOf(res.Status, err)}
	if e, ok := errors.AsType[*fetch.Error](err); ok && e.Err != nil {
		err = e.Err // without the URL, which is known
	}
	if err != nil {
		o.Error = cut(err.Error(), longError)
	}
	w.Fetched(o)
}

// kindOf returns the kind of a failure; empty: success.
func kindOf(status int, err error) string {
	switch {
	case status == http.StatusServiceUnavailable:
		return frontier.FailureUnavailable.String()
	case status == http.StatusTooManyRequests:
		return frontier.FailureTooMany.String()
	case status >= 500:
		return frontier.FailureServer.String()
	case err == nil:
		return ""
	}
	switch c := fetch.ClassOf(err); c {
	case fetch.Unwanted, fetch.BadURL, fetch.Canceled:
		return ""
	case fetch.DNS:
		return frontier.FailureDNS.String()
	case fetch.Timeout:
		return frontier.FailureTimeout.String()
	case fetch.Connect:
		return frontier.FailureConnect.String()
	default:
		return c.String()
	}
}

// cut shortens a text.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	r := []rune(s)
	return string(r[:min(len(r), most)]) + "…"
}

// Fetched records a completed request.
func (w *Watch) Fetched(f Fetch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.fetches) == maxFetches {
		w.fetches = slices.Delete(w.fetches, 0, 1)
	}
	w.fetches = append(w.fetches, f)
	w.bytes += f.Bytes
	w.requests++
	w.answers[f.Status]++
	if !f.Failed() {
		w.streak = 0
		w.answeredLocked(f.Host, f.At)
		return
	}
	w.failed++
	w.streak++
	a := w.ailingLocked(f.Host)
	a.last = f
	if a.since.IsZero() {
		a.since = f.At
	}
}

// answeredLocked records that a host answers.
func (w *Watch) answeredLocked(host string, at time.Time) {
	if a := w.ailing[host]; a != nil {
		a.since, a.good = time.Time{}, at
	}
}

// ailing is the record of a host's failures.
type ailing struct {
	by    map[string]int64 // by kind
	since time.Time        // first failure since the last answer; zero: the host answers
	good  time.Time        // last answer since the first failure; zero: none
	last  Fetch            // last failure
}

func (a *ailing) total() (n int64) {
	for _, k := range a.by {
		n += k
	}
	return n
}

// ailingLocked returns the record of a host that failed.
func (w *Watch) ailingLocked(host string) *ailing {
	a := w.ailing[host]
	if a == nil {
		if len(w.ailing) == maxFailing {
			w.forgetLeastLocked()
		}
		a = &ailing{by: map[string]int64{}}
		w.ailing[host] = a
	}
	return a
}

// ailingOf returns a copy of a host's record.
func (w *Watch) ailingOf(host string) (a ailing, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x := w.ailing[host]; x != nil {
		return *x, true
	}
	return a, false
}

// failingNow returns the hosts that have failed without an answer since, the longest-failing first.
func (w *Watch) failingNow() (hosts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for h, a := range w.ailing {
		if !a.since.IsZero() {
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, func(a, b string) int {
		return cmp.Or(w.ailing[a].since.Compare(w.ailing[b].since), cmp.Compare(a, b))
	})
	return hosts
}

// silent reports whether all recent requests failed, and every host contacted recently fails.
func (w *Watch) silent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.streak >= 3 && !slices.ContainsFunc(w.fetches, func(f Fetch) bool {
		a := w.ailing[f.Host]
		return a == nil || a.since.IsZero()
	})
}

// Answer counts requests by response status; 0 is no response.
type Answer struct {
	Status int   `json:"status"`
	Count  int64 `json:"count"`
}

// Traffic summarizes requests and responses.
type Traffic struct {
	Requests int64    `json:"requests"`
	Failed   int64    `json:"failed"`
	Bytes    int64    `json:"bytes"`
	Answers  []Answer `json:"answers,omitempty"`      // most frequent first
	Median   float64  `json:"latency_median_s"`       // of recent requests
	P95      float64  `json:"latency_p95_s"`          // of recent requests
	Last     []Fetch  `json:"last,omitempty"`         // newest first
	BytesPer float64  `json:"bytes_per_s"`            // over the last minute
	FailedIn int64    `json:"failed_last_min"`        // of those, the ones that failed
	AllIn    int64    `json:"requests_last_min"`      // requests in the last minute
	Early    int64    `json:"contacts_too_early"`     // must be 0
	Contacts int64    `json:"contacts_with_gap_owed"` // contacts whose owed gap is known
}

// counted returns the counters that history samples.
func (w *Watch) counted() (requests, failed, bytes int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.requests, w.failed, w.bytes
}

// traffic summarizes all requests, with the last n.
func (w *Watch) traffic(n int) (x Traffic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	x.Requests, x.Failed, x.Bytes = w.requests, w.failed, w.bytes
	for status, count := range w.answers {
		x.Answers = append(x.Answers, Answer{status, count})
	}
	slices.SortFunc(x.Answers, func(a, b Answer) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Status, b.Status)) })
	took := make([]float64, len(w.fetches))
	for i, f := range w.fetches {
		took[i] = f.Duration
	}
	slices.Sort(took)
	if len(took) > 0 {
		x.Median, x.P95 = took[len(took)/2], took[len(took)*95/100]
	}
	for _, f := range slices.Backward(w.fetches[max(0, len(w.fetches)-n):]) {
		x.Last = append(x.Last, f)
	}
	for i, count := range w.gaps {
		if x.Contacts += count; i == 0 {
			x.Early = count
		}
	}
	return x
}

// lastOf returns the last requests that match, the newest first.
func (w *Watch) lastOf(wanted func(Fetch) bool) (list []Fetch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range slices.Backward(w.fetches) {
		if wanted(f) && len(list) < 10 {
			list = append(list, f)
		}
	}
	return list
}
