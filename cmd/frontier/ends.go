// This file reports how a crawl ended: by exit status and a last line.

package main

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/inspect"
)

// Exit statuses.
const (
	exitOK      = 0 // everything is done
	exitError   = 1 // something failed
	exitUsage   = 2 // the command line or the configuration is wrong; nothing was done
	exitStopped = 3 // the crawl was stopped, or is held, with URLs waiting
	exitLimit   = 4 // a limit was reached, with URLs waiting
	exitNothing = 5 // the crawl ended without a page
)

// exitStatuses is the help text for the exit statuses.
const exitStatuses = `The exit status is 0 if all is done, 1 if something could not be done, and 2 if the command
line or the configuration is wrong and nothing was done. A crawl also ends with
  3  when it was stopped, or an operator's pause holds what is left, and URLs wait
  4  when a limit was reached and URLs wait (-max-..., -limit-...)
  5  when it ended and no page was fetched in this run, though some URL was tried
The last line on the standard error says it in words.`

// ending is how a crawl ended.
type ending struct {
	status int
	words  string
}

// endOf returns how a crawl's run ended that had no error but its context's.
func (s *settings) endOf(ctx context.Context, f *frontier.Frontier, p crawler.Progress) ending {
	left := p.Frontier.Waiting - p.Parked - p.NextRun + p.Frontier.Scheduled
	on := fmt.Sprintf("the same command goes on from here, or: frontier resume %s", s.dir)
	if s.dir == "" {
		on = "nothing is kept, as there was no -dir"
	}
	full := p.FilteredBy["host-full"]
	limit, bounded := boundOf(ctx)
	switch {
	case bounded && left+s.unadded > 0:
		return ending{exitLimit, fmt.Sprintf("limit reached (%s): %s%s; %s", limit, wait(left), s.alsoUnadded(), on)}
	case ctx.Err() != nil && left > 0:
		return ending{exitStopped, fmt.Sprintf("stopped: %s; %s", wait(left), on)}
	case left > 0 && s.crawler.MaxPages > 0 && p.Pages >= s.crawler.MaxPages:
		return ending{exitLimit, fmt.Sprintf("limit reached (-max-pages %d): %s; %s", s.crawler.MaxPages, wait(left), on)}
	case left > 0 && atLimit(f):
		return ending{exitLimit, fmt.Sprintf("limit reached: %s, of hosts or scopes at a limit; frontier rules shows it, frontier clear lifts it", wait(left))}
	case left > 0:
		return ending{exitStopped, fmt.Sprintf("held: %s, of hosts that are paused; frontier unpause lets them go on", wait(left))}
	case full > 0:
		return ending{exitLimit, fmt.Sprintf("limit reached (-max-pages-per-host %d): %s for the next run; %s", s.crawler.MaxPagesPerHost, wait(p.NextRun), on)}
	case p.Pages+p.Unchanged == 0 && (p.Frontier.HandedOut > 0 || p.Trouble != ""):
		return ending{exitNothing, "nothing was fetched: " + s.trouble(p)}
	case p.Pages == 0 && p.Frontier.HandedOut == 0:
		return ending{exitOK, "nothing is left to crawl: all was done before; frontier now URL fetches one again"}
	}
	return ending{exitOK, fmt.Sprintf("ended: %d pages, and nothing is left to crawl", p.Pages)}
}

// alsoUnadded names the seeds of files that the run did not come to. Those of an earlier run may wait already.
func (s *settings) alsoUnadded() string {
	if s.unadded == 0 {
		return ""
	}
	return fmt.Sprintf(", and the last %d of -seeds-file were not reached", s.unadded)
}

func wait(n int64) string {
	if n == 1 {
		return "1 URL waits"
	}
	return fmt.Sprintf("%d URLs wait", n)
}

// atLimit reports whether a limit holds the waiting URLs.
func atLimit(f *frontier.Frontier) bool {
	return slices.ContainsFunc(inspect.New(f).Largest(100), func(h inspect.Host) bool { return h.Reason == inspect.ReasonLimit })
}

// trouble explains why nothing was fetched.
func (s *settings) trouble(p crawler.Progress) string {
	why := cmp.Or(p.Trouble, counted(p))
	if p.Blocked > 0 {
		why += "; -allow-network " + s.private() + " contacts it all the same"
	}
	return why
}

// counted describes what came instead of pages.
func counted(p crawler.Progress) string {
	var out []string
	for _, x := range []struct {
		n    int64
		what string
	}{
		{p.Redirects, "redirects"}, {p.Gone, "gone"}, {p.Refused, "refused"}, {p.Failed, "failed fetches"}, {p.Frontier.GivenUp, "URLs given up"},
		{p.Denied, "denied by robots.txt"}, {p.Unreachable, "unreachable"}, {p.Blocked, "blocked"}, {p.Parked, "outside the scope"},
	} {
		if x.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	return strings.Join(out, ", ")
}

// private returns the private networks of the seeds, as far as their spelling shows.
func (s *settings) private() string {
	for _, seed := range slices.Concat(s.seeds, s.listed.First) {
		if network := networkOfURL(seed); network != "" {
			return network
		}
	}
	return "ADDRESS/32"
}

func networkOfURL(seed string) string {
	u, err := url.Parse(seed)
	if err != nil {
		return ""
	}
	return networkOf(u.Hostname())
}

// judgePrivate reports seeds whose spelling shows that the crawl would not contact them.
func (s *settings) judgePrivate() {
	if s.web.proxy != "" || len(s.sites.proxies) > 0 || len(s.web.resolving) > 0 {
		return // a proxy or another setting decides their addresses
	}
	for i, u := range s.seeds {
		network := networkOfURL(u)
		if network == "" || slices.ContainsFunc(s.fetch.Networks.Allow, func(p netip.Prefix) bool {
			first, _, _ := strings.Cut(network, ",")
			return p.Overlaps(netip.MustParsePrefix(first))
		}) {
			continue
		}
		s.item(seedsKey, s.begin[i], fmt.Errorf("seed %q: its address is not public, and such are not contacted unless you say so: -allow-network %s", fetch.Redact(s.begin[i]), network))
	}
}

// networkOf returns the private network of a host, if its name shows one.
func networkOf(host string) string {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return "127.0.0.0/8,::1/128"
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	for _, n := range []string{"127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7", "fe80::/10"} {
		if netip.MustParsePrefix(n).Contains(addr.Unmap()) {
			return n
		}
	}
	return ""
}
