// This file answers what became of a URL.

package console

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// End is something that became of a URL: an answer, a failure, a refusal.
type End struct {
	At       time.Time `json:"at"`
	URL      string    `json:"url,omitempty"`    // in a list of several URLs
	What     string    `json:"what"`             // in a word: fetched, failed, refused
	Status   int       `json:"status,omitempty"` // of the answer; 0: there was none
	Bytes    int64     `json:"bytes,omitempty"`
	Duration float64   `json:"duration_s,omitempty"`
	Reason   string    `json:"reason,omitempty"` // the error, or what refused it
}

// EndsQuery says which ends are wanted.
type EndsQuery struct {
	What  string // as in End; empty: any
	Host  string // of the URL; empty: any
	Match string // a part of the URL; empty: any
	N     int    // how many at most
}

// endWords are what End.What may be in a list of ends.
var endWords = []string{"fetched", "unchanged", "redirected", "gone", "rejected", "failed", "given up", "refused"}

// mostEnds is how many ends a page lists.
const mostEnds = 200

// endsData is what the list of ends shows.
type endsData struct {
	EndsQuery
	Words []string
	Ends  []End
}

// endsPage lists what became of URLs, the newest first.
func (c *Console) endsPage(r *http.Request) (any, error) {
	if c.o.Newest == nil {
		return nil, errNoPage
	}
	d := endsData{Words: endWords, EndsQuery: EndsQuery{
		What: r.FormValue("what"), Host: strings.TrimSpace(r.FormValue("host")), Match: strings.TrimSpace(r.FormValue("match")), N: mostEnds,
	}}
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

// words says it.
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

// ends are what became of a URL, the newest first: what is on record, or else those of the last
// requests that were for it.
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
