// This file answers questions about what became of URLs.

package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// End is an event in a URL's life: a response, a failure, a refusal.
type End struct {
	At       time.Time `json:"at"`
	URL      string    `json:"url,omitempty"`    // set in lists of several URLs
	What     string    `json:"what"`             // one word: fetched, failed, refused, ...
	Status   int       `json:"status,omitempty"` // of the response; 0: there was none
	Bytes    int64     `json:"bytes,omitempty"`
	Duration float64   `json:"duration_s,omitempty"`
	Reason   string    `json:"reason,omitempty"` // the error, or the rule that refused it
}

// EndsQuery selects ends.
type EndsQuery struct {
	What  string // an End.What; empty: any
	Host  string // a host; empty: any
	Match string // part of the URL; empty: any
	N     int    // most ends to return
}

// endWords are the values of End.What in a list of ends.
var endWords = []string{"fetched", "unchanged", "redirected", "gone", "rejected", "failed", "given up", "refused"}

// mostEnds is the most ends on a page.
const mostEnds = 200

// endsData is the data of the ends page.
type endsData struct {
	EndsQuery
	Words []string
	Ends  []End
}

// endsPage lists recent ends, the newest first.
func (c *Console) endsPage(r *http.Request) (any, error) {
	if c.o.Newest == nil {
		return nil, errNoPage
	}
	d := endsData{Words: endWords, EndsQuery: EndsQuery{
		What: r.FormValue("what"), Host: strings.TrimSpace(r.FormValue("host")), Match: strings.TrimSpace(r.FormValue("match")), N: mostEnds,
	}}
	if d.Host != "" {
		key, err := KeyOf(c.f, d.Host)
		if err != nil {
			return nil, &badRequest{err}
		}
		d.Host = key
	}
	if d.What != "" && !slices.Contains(endWords, d.What) {
		return nil, &badRequest{fmt.Errorf("no URL ends as %.40q; want one of %s", d.What, strings.Join(endWords, ", "))}
	}
	release, err := c.scan()
	if err != nil {
		return nil, err
	}
	defer release()
	d.Ends, err = c.o.Newest(r.Context(), d.EndsQuery)
	return d, err
}

// words describes the end.
func (e End) words(now time.Time) string {
	text := fmt.Sprintf("was %s %s ago", e.What, Ago(max(0, now.Sub(e.At)).Round(time.Second)))
	if e.What == "failed" {
		text = strings.TrimPrefix(text, "was ")
	}
	if e.Status > 0 {
		text += fmt.Sprintf(", with status %d", e.Status)
	}
	return text
}

// ends returns the ends of a URL, the newest first: from the record, or else from the last requests.
func (c *Console) ends(ctx context.Context, url string) (list []End, err error) {
	if c.o.Ends != nil {
		return c.o.Ends(ctx, url)
	}
	for _, f := range c.o.Watch.lastOf(func(f Fetch) bool { return f.URL == url }) {
		e := End{At: f.At, What: "answered", Status: f.Status, Bytes: f.Bytes, Duration: f.Duration, Reason: f.Error}
		if f.Failed() {
			e.What = "failed"
		}
		list = append(list, e)
	}
	return list, nil
}
