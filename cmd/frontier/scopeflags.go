// This file reads a crawl's seeds, and the flags that bound its scope.

package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// scopeFlags are these flags before they are checked.
type scopeFlags struct {
	hosts, domains   list
	also             list
	include, exclude repeated
}

func (c *scopeFlags) define(fs *flagSet, o *crawler.Options) {
	fs.Var(&c.hosts, "scope-hosts", "`hosts` to crawl, comma-separated; * for any (default: those of the seeds). A crawl keeps its scope: a later command in -dir that names neither hosts nor domains has it too, with its own seeds")
	fs.Var(&c.domains, "scope-domains", "`domains` to crawl with all hosts below them, comma-separated")
	fs.Var(&c.also, "scope-also", "`hosts` to crawl beside these; where a seed redirects joins them by itself, unless -scope-hosts or -scope-domains is given; comma-separated")
	fs.Var(&c.include, "include", "`pattern` (Go regular expression) that a URL must match, a sitemap's too; repeatable: one of them; '' clears the list")
	fs.Var(&c.exclude, "exclude", "`pattern` that no URL may match; repeatable; '' clears the list")
	fs.BoolVar(&o.Requisites, "requisites", false, "fetch what pages need to be shown, too, from any host: style sheets, images, icons, scripts, fonts, films, frames, objects; counted apart")
	fs.IntVar(&o.Scope.MaxDepth, "max-depth", 0, "greatest number of links from a seed (default: any)")
	fs.IntVar(&o.Scope.MaxURL, "max-url", 4096, "greatest length of a URL in bytes")
}

// compile checks what does not depend on the seeds.
func (c *scopeFlags) compile(s *settings) {
	compile := func(name string, patterns []string) (out []*regexp.Regexp) {
		for _, p := range patterns {
			if p == "" {
				continue
			}
			re, err := regexp.Compile(p)
			if err != nil {
				s.badItem(name, p, "want a pattern: "+err.Error())
				continue
			}
			out = append(out, re)
		}
		return out
	}
	s.crawler.Scope.Include = compile("include", c.include)
	s.crawler.Scope.Exclude = compile("exclude", c.exclude)
	s.badIf(s.crawler.Scope.MaxDepth < 0, "want >= 0", "max-depth")
	s.badIf(s.crawler.Scope.MaxURL < 1, "want >= 1", "max-url")
}

// apply sets the crawl's scope.
func (c *scopeFlags) apply(s *settings) {
	sc := &s.crawler.Scope
	sc.OnJoin = s.join
	sc.Domains = c.domains
	for _, d := range c.domains {
		c.judgeName(s, "scope-domains", d)
	}
	for _, h := range c.also {
		c.judgeName(s, "scope-also", h)
	}
	for _, h := range c.hosts {
		if h == "*" {
			sc.Domains, sc.Hosts = nil, nil
			return
		}
		c.judgeName(s, "scope-hosts", h)
		sc.Hosts = append(sc.Hosts, h)
	}
	defer func() { sc.Hosts = append(sc.Hosts, c.also...) }()
	if len(sc.Hosts) > 0 || len(sc.Domains) > 0 {
		return
	}
	sc.Seeds = slices.Concat(s.seeds, s.listed.First)
	sc.Hosts = slices.Clone(s.listed.Hosts)
	for _, u := range s.seeds {
		if h, err := frontier.HostName(u); err == nil {
			sc.Hosts = append(sc.Hosts, h)
		}
	}
	if len(sc.Hosts)+len(c.also) == 0 && len(s.begin)+len(s.seedFiles()) == 0 && s.dir != "" && exists(s.dir) && !s.example {
		s.report(errors.New("without seeds, where may the crawl go? Want -scope-hosts or -scope-domains, or a URL to begin from"))
	}
}

// judgeName reports an invalid host or domain name.
func (c *scopeFlags) judgeName(s *settings, option, name string) {
	if strings.ContainsAny(name, "/*@ ") {
		s.badItem(option, name, "want a name without scheme, path and *, as in www.example.org")
	}
}

var plainURLs = urlnorm.New()

// normalizer returns the crawl's normalizer.
func (s *settings) normalizer() *urlnorm.Normalizer {
	if s.crawler.Normalizer == nil {
		return plainURLs
	}
	return s.crawler.Normalizer
}

// seed normalizes a seed.
func (s *settings) seed(typed string) (string, error) {
	u, err := s.normalizer().Typed(typed)
	scheme, _, _ := strings.Cut(u, "://")
	switch {
	case strings.HasPrefix(typed, "/") || strings.HasPrefix(typed, "./") || strings.HasPrefix(typed, "../"):
		return "", errors.New("want a URL like https://example.org/; a file of URLs is read with -seeds-file")
	case err != nil && !errors.Is(err, urlnorm.ErrScheme):
		return "", err
	case !strings.HasPrefix(u, "http") && s.crawler.Protocols[scheme] == nil:
		return "", errors.New("want http or https, or a scheme of -protocols")
	}
	if _, err := frontier.HostName(u); err != nil {
		return "", err
	}
	return u, nil
}

// addSeeds normalizes the seeds.
func (s *settings) addSeeds(ctx context.Context) {
	for _, a := range s.begin {
		u, err := s.seed(a)
		if err != nil {
			s.item(seedsKey, a, fmt.Errorf("seed %q: %w", fetch.Redact(a), err))
			continue
		}
		s.seeds = append(s.seeds, u)
	}
	if len(s.seeds) == len(s.begin) {
		s.judgePrivate()
	}
	s.judgeSeedFiles(ctx)
	if len(s.begin)+len(s.seedFiles()) == 0 && !s.example && (s.dir == "" || !exists(s.dir)) {
		s.report(errors.New("where does the crawl begin? No seed is given, and there is no crawl in -dir to go on with; as in: frontier crawl -dir state https://example.org/"))
	}
}
