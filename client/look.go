// This file reads the state of hosts and of the frontier, and controls it.

package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
)

// hostInfo is a host in JSON.
type hostInfo struct {
	Now        time.Time `json:"now"`
	Host       string    `json:"host"`
	Waiting    int64     `json:"waiting"`
	Scheduled  int64     `json:"scheduled"`
	Leased     int       `json:"leased"`
	Deadline   time.Time `json:"deadline"`
	Due        time.Time `json:"due"`
	Group      string    `json:"group"`
	GroupDue   time.Time `json:"group_due"`
	CrawlDelay float64   `json:"crawl_delay_s"`
	Standing   int       `json:"standing"`
	Backoff    struct {
		Step     int     `json:"step"`
		Gap      float64 `json:"gap_s"`
		Failures int     `json:"failures"`
		Probes   int     `json:"probes"`
	} `json:"backoff"`
	Full  bool  `json:"full"`
	Known *bool `json:"known"`
}

// Host returns the server's state of a host: its URLs, leases and clocks, and the effect of its failures.
// Its times are by this machine's clock. Rule, Used, Queues, Reason and Until are not set.
func (c *Client) Host(ctx context.Context, host string) (inspect.Host, error) {
	var w hostInfo
	q, _ := jsonRequest(http.MethodGet, "/v1/hosts/"+url.PathEscape(host), nil)
	if err := c.do(ctx, q, into(&w)); err != nil {
		return inspect.Host{}, err
	}
	if w.Known != nil && !*w.Known {
		return inspect.Host{}, fmt.Errorf("client: %q: %w", host, frontier.ErrUnknownHost)
	}
	now := time.Now()
	here := func(t time.Time) time.Time { // the server's clock may differ
		if t.IsZero() {
			return t
		}
		return now.Add(t.Sub(w.Now))
	}
	return inspect.Host{
		Host: w.Host, Waiting: w.Waiting, Scheduled: w.Scheduled, Leased: w.Leased, Deadline: here(w.Deadline), Due: here(w.Due),
		Group: w.Group, GroupDue: here(w.GroupDue), CrawlDelay: seconds(w.CrawlDelay), Standing: w.Standing, Full: w.Full,
		Backoff: inspect.Backoff{Step: w.Backoff.Step, Gap: seconds(w.Backoff.Gap), Failures: w.Backoff.Failures, Probes: w.Backoff.Probes},
	}, nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// stats is Stats in JSON.
type stats struct {
	Waiting     int64            `json:"waiting"`
	Immediate   int64            `json:"immediate"`
	Held        int64            `json:"held"`
	Scheduled   int64            `json:"scheduled"`
	Leased      int64            `json:"leased"`
	Hosts       int64            `json:"hosts"`
	Bound       int64            `json:"bound"`
	Groups      int64            `json:"groups"`
	BackedOff   int64            `json:"backed_off"`
	Quarantined int64            `json:"quarantined"`
	Known       int64            `json:"known"`
	Added       int64            `json:"added"`
	Duplicates  int64            `json:"duplicates"`
	Refused     int64            `json:"refused"`
	HandedOut   int64            `json:"handed_out"`
	Done        map[string]int64 `json:"done"`
	Retried     int64            `json:"retried"`
	GivenUp     int64            `json:"given_up"`
	Deleted     int64            `json:"deleted"`
	Expired     int64            `json:"expired"`
	Unreadable  int64            `json:"unreadable"`
	Memory      int64            `json:"memory_bytes"`
}

// Stats returns the server's counts, without rates and histograms. With Options.Crawl, Waiting,
// Scheduled, Leased, Added, HandedOut and Done are the crawl's; the others are of all crawls. If the
// server does not answer within 5 seconds, Stats returns the previous counts.
func (c *Client) Stats() frontier.Stats {
	ctx, cancel := context.WithTimeout(c.ctx, min(c.o.Timeout, 5*time.Second))
	defer cancel()
	var w stats
	q, _ := jsonRequest(http.MethodGet, "/v1/stats", nil)
	err := c.do(ctx, q, into(&w))
	if err == nil && c.o.Crawl != "" {
		w.Waiting, w.Immediate, w.Held, w.Scheduled, w.Leased, w.Added, w.HandedOut, w.Done = 0, 0, 0, 0, 0, 0, 0, nil
		q, _ = jsonRequest(http.MethodGet, "/v1/crawls/"+url.PathEscape(c.o.Crawl), nil)
		err = c.do(ctx, q, into(&w))
		if p, ok := errors.AsType[*ProblemError](err); ok && p.Type == "unknown-crawl" {
			err = nil // the crawl has no URLs yet
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		return c.last
	}
	c.last = frontier.Stats{
		Waiting: w.Waiting, Immediate: w.Immediate, Held: w.Held, Scheduled: w.Scheduled, Leased: w.Leased,
		Hosts: w.Hosts, Bound: w.Bound, Groups: w.Groups, BackedOff: w.BackedOff, Quarantined: w.Quarantined, Known: w.Known,
		Added: w.Added, Duplicates: w.Duplicates, Refused: w.Refused, HandedOut: w.HandedOut, Retried: w.Retried,
		GivenUp: w.GivenUp, Deleted: w.Deleted, Expired: w.Expired, Unreadable: w.Unreadable, MemoryBytes: w.Memory,
	}
	for r := range c.last.Done {
		c.last.Done[r] = w.Done[resultName(frontier.Result(r))]
	}
	return c.last
}

// Pause stops hand-outs of a scope's hosts, as frontier.Frontier.Pause does.
func (c *Client) Pause(s scope.Scope) error { return c.actWithin("pause", s, 0) }

// Resume ends Pause.
func (c *Client) Resume(s scope.Scope) error { return c.actWithin("resume", s, 0) }

// SetStanding moves all URLs of a host up by levels, or down if that is negative, as
// frontier.Frontier.SetStanding does.
func (c *Client) SetStanding(host string, levels int) error {
	return c.actWithin("standing", scope.Host(host), levels)
}

// actWithin is act for calls without a context.
func (c *Client) actWithin(verb string, s scope.Scope, n int) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.Timeout)
	defer cancel()
	_, err := c.act(ctx, verb, s, n)
	return err
}

// Delete removes the waiting and scheduled URLs of a scope and returns how many there were, as
// frontier.Frontier.Delete does.
func (c *Client) Delete(ctx context.Context, s scope.Scope) (int64, error) {
	return c.act(ctx, "delete", s, 0)
}

// act carries out an action on a scope, with a number if it takes one.
func (c *Client) act(ctx context.Context, verb string, s scope.Scope, n int) (count int64, err error) {
	if _, isCrawl := s.Crawl(); isCrawl {
		return 0, fmt.Errorf("client: %s: the scope is %v; want a host, a domain or all hosts", verb, s)
	}
	q, err := jsonRequest(http.MethodPost, "/v1/do", struct {
		Do    string `json:"do"`
		Scope string `json:"scope"`
		N     int    `json:"n,omitempty"`
	}{verb, s.String(), n})
	if err != nil {
		return 0, err
	}
	q.key = rand.Text() // otherwise a repeated Delete would count only what is left
	var w struct {
		Count int64 `json:"count"`
	}
	err = c.do(ctx, q, into(&w))
	return w.Count, err
}
