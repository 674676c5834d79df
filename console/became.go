// This file answers what became of a URL.

package console

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// End is something that became of a URL: an answer, a failure, a refusal.
type End struct {
	At       time.Time `json:"at"`
	What     string    `json:"what"`             // in a word: fetched, failed, refused
	Status   int       `json:"status,omitempty"` // of the answer; 0: there was none
	Bytes    int64     `json:"bytes,omitempty"`
	Duration float64   `json:"duration_s,omitempty"`
	Reason   string    `json:"reason,omitempty"` // the error, or what refused it
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
