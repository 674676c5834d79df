// This file says what is known of a URL.

package importance

import (
	"github.com/seed-7440039f/frontier"
)

// Explanation is what an Estimator knows of a URL and its host.
type Explanation struct {
	Score Score
	// Links is the number of links that were found to the URL, roughly. With Links Worth is the same; with
	// Trust it is what the URL has of a seed's cash. Weight is the worth compared with the mean of the pages visited, times the square of
	// Useful, for recrawl.
	Links, Worth, Weight float64
	// Level is the priority that the URL deserves at its present worth; it is served with that or one
	// that it has reached before.
	Level int
	// Pages is how many pages of its host were visited; of 4,096 or more, a part of them, the oldest
	// counting least. Useful is the useful part, of these and eight more that are taken as useful.
	Pages  int
	Useful float64
	// Sunk is how many levels its host has sunk.
	Sunk int
}

// Explain returns what is known of a URL. Host is the key of its host; empty: as frontier.HostName.
func (x *Estimator) Explain(e frontier.Entry) Explanation {
	s, host := x.sight(&e, &unknown), x.host(&e)
	worth := x.score.worth(s)
	return Explanation{
		Score: x.opts.Score, Links: x.score.links(s), Worth: worth, Weight: x.weight(worth, host), Level: x.score.deserves(s),
		Pages: host.pages(), Useful: host.share(), Sunk: host.sunk(),
	}
}

// Counts are what an Estimator has counted since New.
type Counts struct {
	Links int64 // links that were found to known URLs
	Noted int64 // of these, those that lifted a URL to another level: the frontier notes it if it waits
	// Covered is with Trust the part of the known cash that was fetched, from 0 to 1: in which part
	// of what is known to be important the crawl is done. URLs that are never answered are not
	// fetched. With Links it is 0.
	Covered float64
}

// Counts returns what was counted. A snapshot keeps Covered.
func (x *Estimator) Counts() Counts {
	return Counts{Links: x.links.Load(), Noted: x.noted.Load(), Covered: x.score.covered()}
}

// Weight returns what a fresh copy of a page is worth compared with others, from 1e-4 to 1e4: its links (or
// cash) relative to the mean of the pages visited, times the square of its host's useful part. It is an
// Options.Weight of package recrawl/adapter; set Options.Keep for it.
func (x *Estimator) Weight(e frontier.Entry, _ frontier.History) float64 {
	return x.weight(x.score.worth(x.sight(&e, &unknown)), x.host(&e))
}

func (x *Estimator) weight(worth float64, host tally) float64 {
	if pages := x.pages.Load(); pages > 0 {
		if mean := float64(x.worth.Load()) / worthUnit / float64(pages); mean > 0 {
			worth /= mean
		}
	}
	return min(1e4, max(1e-4, worth*host.share()*host.share()))
}

// host returns what is known of the host of a URL.
func (x *Estimator) host(e *frontier.Entry) tally {
	host := e.Host
	if host == "" {
		host, _ = frontier.HostName(e.URL) // of a bad one nothing is known
	}
	return x.hosts.of(x.key.host(host))
}
