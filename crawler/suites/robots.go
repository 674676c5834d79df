// This file runs suites about robots.txt: robots*.json.

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/robots"
)

// body is a robots.txt file, in base64 where it is not UTF-8.
type body struct {
	Robots    string
	RobotsB64 []byte `json:"robots_b64"`
}

func (b body) bytes() []byte {
	if b.RobotsB64 != nil {
		return b.RobotsB64
	}
	return []byte(b.Robots)
}

type robotsFile struct {
	Bodies []body
	Cases  []struct {
		body
		ID         string
		Body       *int // of Bodies
		Agent      *string
		URL        string
		Allowed    bool
		GoogleOnly bool `json:"google_only"`
		Contested  []string
	}
	Sitemap []struct {
		body
		Sitemaps []string
	}
}

func runRobots(r *report, file robotsFile) error {
	for i, c := range file.Cases {
		c.ID = cmp.Or(c.ID, fmt.Sprintf("cases/%d", i))
		if c.Agent == nil {
			return fmt.Errorf("%s: no agent: another shape of cases", c.ID)
		}
		text := c.body
		if c.Body != nil {
			if *c.Body < 0 || *c.Body >= len(file.Bodies) {
				return fmt.Errorf("%s: no body %d", c.ID, *c.Body)
			}
			text = file.Bodies[*c.Body]
		}
		ok := robots.Parse(text.bytes()).Group(*c.Agent).Allowed(c.URL) == c.Allowed
		detail := fmt.Sprintf("agent %q, URL %q: allowed is %v", *c.Agent, c.URL, ok == c.Allowed)
		switch {
		case c.Contested != nil:
			r.add(c.ID, contested, detail+", "+strings.Join(c.Contested, " and ")+" answers otherwise than the suite, which has "+fmt.Sprint(c.Allowed))
		case ok:
			r.add(c.ID, passed, "")
		case c.GoogleOnly:
			r.add(c.ID, optional, "Google's own: "+detail)
		default:
			r.add(c.ID, failed, fmt.Sprintf("%s, want %v, robots.txt:\n%s", detail, c.Allowed, text.bytes()))
		}
	}
	for i, c := range file.Sitemap {
		got := robots.Parse(c.bytes()).Sitemaps()
		id := fmt.Sprintf("sitemap/%d", i)
		if slices.Equal(got, c.Sitemaps) {
			r.add(id, passed, "")
		} else {
			r.add(id, failed, fmt.Sprintf("got %q, want %q", got, c.Sitemaps))
		}
	}
	return nil
}
