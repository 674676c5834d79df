// This file reads crawl's flags about politeness: delays, concurrency, and what follows failures.

package main

import (
	"math"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// paceFlags are these flags before they are checked.
type paceFlags struct {
	delay, groupDelay, retryWait time.Duration
	factor                       float64
	minDelay, maxDelay           time.Duration
	tries                        int
	exempt                       list
}

func (p *paceFlags) define(fs *flagSet, s *settings) {
	fs.DurationVar(&p.delay, "delay", 0, "fixed `pause` between two contacts with a host, instead of -delay-factor")
	fs.Float64Var(&p.factor, "delay-factor", 10, "pause as a multiple of the last fetch's duration")
	fs.DurationVar(&p.minDelay, "min-delay", time.Second, "least pause under -delay-factor")
	fs.DurationVar(&p.maxDelay, "max-delay", 30*time.Second, "greatest pause under -delay-factor")
	fs.DurationVar(&p.groupDelay, "group-delay", 0, "fixed `pause` between two contacts with an address (default: as for a host)")
	defineTrouble(fs, &s.frontier.Backoff, &s.frontier.Quarantine)
	fs.BoolVar(&s.crawler.Groups.Off, "no-groups", false, "hosts with the same address owe it nothing together")
	fs.IntVar(&s.frontier.HostConcurrency, "host-concurrency", 1, "contacts with one host at once")
	fs.IntVar(&s.crawler.Groups.Concurrency, "group-concurrency", 1, "contacts with one address at once")
	fs.IntVar(&s.crawler.Groups.IPv6Bits, "group-ipv6-bits", 64, "IPv6 addresses with so many leading `bits` in common are one address (128: each is its own)")
	fs.Var(&p.exempt, "group-exempt", "`networks` (CIDR) whose addresses are shared without being one server, as of a CDN; comma-separated")
	fs.DurationVar(&s.crawler.MaxCrawlDelay, "max-crawl-delay", 24*time.Hour, "greatest Crawl-delay of a robots.txt that is honoured; more than a day is read as a day")
	fs.DurationVar(&s.crawler.MaxRetryAfter, "max-retry-after", 24*time.Hour, "greatest Retry-After that is honoured")
	fs.IntVar(&p.tries, "retry-tries", 3, "tries of a URL in all; without it and -retry-wait they depend on the kind of failure")
	fs.DurationVar(&p.retryWait, "retry-wait", 30*time.Second, "wait after the first failed try, four times as long after each further one")
}

// defineTrouble defines the flags of crawl and serve about failing hosts.
func defineTrouble(fs *flagSet, b *frontier.Backoff, q *frontier.Quarantine) {
	fs.DurationVar(&b.Base, "backoff-base", 2*time.Second, "pause after the first failure that slows a host down, twice as long after each further one")
	fs.DurationVar(&b.Max, "backoff-max", 10*time.Minute, "greatest such pause")
	fs.DurationVar(&b.ForgiveAfter, "backoff-forgive", 10*time.Minute, "least `time` without a failure, and 200 contacts, after which such a pause is halved")
	fs.IntVar(&q.Probes, "probes", 10, "a host that only fails, or whose robots.txt cannot be had, is tried again after 10, 20, 40 minutes, and so on, up to a day; `number` of failed probes after which its URLs are dropped (0: never)")
	fs.IntVar(&q.After, "quarantine-after", 8, "failures in a row after which a host gets only occasional probes")
	fs.DurationVar(&q.Probe, "quarantine-probe", 10*time.Minute, "pause before the first probe, twice as long before each further one")
}

const maxPause = 30 * 24 * time.Hour // of a frontier

// noPause reports whether a frontier refuses a pause, which may be 0.
func noPause(d time.Duration) bool { return d < 0 || d > maxPause || unit.Missing(d, unit.Least) }

// judgeTrouble checks them.
func judgeTrouble(o *options, b *frontier.Backoff, q *frontier.Quarantine) {
	o.badIf(b.Base < unit.Least || b.Max < b.Base || b.Max > maxPause, "want 1ms <= base <= max <= 720h", "backoff-base", "backoff-max")
	o.badIf(b.ForgiveAfter < unit.Least || b.ForgiveAfter > maxPause, "want 1ms to 720h", "backoff-forgive")
	o.badIf(q.After < 1 || q.After > 10_000, "want 1 to 10000", "quarantine-after")
	o.badIf(q.Probe < unit.Least || q.Probe > maxPause, "want 1ms to 720h", "quarantine-probe")
	if q.Probes < 0 || q.Probes > 250 {
		o.bad("want 0 to 250", "probes")
	} else {
		q.Forever = q.Probes == 0
	}
}

// apply checks the flags and completes the options.
func (p *paceFlags) apply(s *settings) {
	p.applyDelays(s)
	judgeTrouble(s.options, &s.frontier.Backoff, &s.frontier.Quarantine)
	hosts, bits := s.frontier.HostConcurrency, s.crawler.Groups.IPv6Bits
	s.badIf(hosts < 1 || hosts > 1024, "want 1 to 1024", "host-concurrency")
	s.badIf(s.crawler.Groups.Concurrency < 1, "want >= 1", "group-concurrency")
	s.badIf(bits < 1 || bits > 128, "want 1 to 128", "group-ipv6-bits")
	s.crawler.Groups.Exempt = s.networks("group-exempt", p.exempt)
	s.badIf(s.crawler.MaxCrawlDelay < unit.Least, "want >= 1ms", "max-crawl-delay")
	s.badIf(s.crawler.MaxRetryAfter < unit.Least, "want >= 1ms", "max-retry-after")
	s.badIf(p.tries < 1 || noPause(p.retryWait), "want tries >= 1 and a wait of 0, or 1ms to 720h", "retry-tries", "retry-wait")
	if s.given("retry-tries") || s.given("retry-wait") {
		s.frontier.Retry = frontier.Retries(p.tries, p.retryWait)
	} else {
		s.silence("retry-tries", "retry-wait")
	}
}

// applyDelays chooses between -delay and -delay-factor, by the stronger source.
func (p *paceFlags) applyDelays(s *settings) {
	byFactor := []string{"delay-factor", "min-delay", "max-delay"}
	fixed := s.given("delay")
	for _, name := range byFactor {
		switch {
		case !fixed || !s.given(name) || s.stronger("delay", name):
		case s.stronger(name, "delay"):
			fixed = false
		default:
			s.fault([]string{"delay"}, "%s cannot be combined with %s, %s or %s", s.shown("delay"), s.shown("delay-factor"), s.shown("min-delay"), s.shown("max-delay"))
		}
	}
	s.frontier.Delay = frontier.FactorDelay(p.factor, p.minDelay, p.maxDelay)
	if fixed {
		s.frontier.Delay = frontier.FixedDelay(p.delay)
		s.silence(byFactor...)
	} else {
		s.silence("delay")
	}
	s.badIf(fixed && noPause(p.delay), "want 0, or 1ms to 720h", "delay")
	switch {
	case fixed:
	case !(p.factor >= 0) || math.IsInf(p.factor, 1):
		s.bad("want a finite number >= 0", "delay-factor")
	case noPause(p.minDelay) || noPause(p.maxDelay):
		s.bad("want 0, or 1ms to 720h", "min-delay", "max-delay")
	case p.maxDelay < p.minDelay:
		s.bad("want the least pause not to be longer than the greatest", "min-delay", "max-delay")
	}
	if !s.given("group-delay") {
		s.silence("group-delay")
		return
	}
	s.frontier.GroupDelay = frontier.FixedDelay(p.groupDelay)
	s.badIf(noPause(p.groupDelay), "want 0, or 1ms to 720h", "group-delay")
}
