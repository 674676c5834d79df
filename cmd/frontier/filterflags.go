// This file reads crawl's flags about which URLs and responses it wants.

package main

import (
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/filter"
	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// filterFlags are these flags before they are checked.
type filterFlags struct {
	denyHosts, denyDomains, denyExt, ext, schemes, types list
	maxQuery, maxParams                                  int
	maxLength                                            byteSize
}

func (w *filterFlags) define(fs *flagSet, o *crawler.Options) {
	fs.Var(&w.denyHosts, "deny-hosts", "`hosts` not to crawl, comma-separated")
	fs.Var(&w.denyDomains, "deny-domains", "`domains` not to crawl, nor any host below them, comma-separated")
	fs.Var(&w.ext, "ext", "only paths with these `extensions`, comma-separated; - for none")
	fs.Var(&w.denyExt, "deny-ext", "no paths with these `extensions`, comma-separated")
	fs.Var(&w.schemes, "schemes", "only URLs of these `schemes`, comma-separated")
	fs.Var(&w.types, "content-types", "only read answers of these `types`, as text/html,image/*")
	fs.Var(w.maxLength.set(0), "max-length", "do not read answers that say that they are longer, in `bytes` (default: read -max-body of them)")
	fs.IntVar(&w.maxQuery, "max-query", 0, "greatest length of a query in bytes (default: any)")
	fs.IntVar(&w.maxParams, "max-params", 0, "most parameters of a query (default: 16, by the trap guards)")
	fs.BoolVar(&o.SkipNoFollow, "skip-nofollow", false, "leave links out whose rel says nofollow, ugc or sponsored")
	t := &o.Traps
	fs.BoolVar(&t.Off, "no-trap-guards", false, "crawl calendars, facets, session ids, loops and the like without end")
	fs.IntVar(&t.MaxSegments, "max-segments", 32, "most segments of a path")
	fs.IntVar(&t.MaxRepeats, "max-repeats", 2, "how often segments may come one after the other in a path, or two neighbours anywhere")
	fs.IntVar(&t.MaxPerPattern, "max-per-pattern", 500_000, "pages of a host whose URLs differ in numbers and values only")
	fs.IntVar(&t.MaxCalendar, "max-calendar", 2000, "pages of a host whose URLs end in a date")
	fs.IntVar(&t.MaxFacets, "max-facets", 5000, "pages of a path with three parameters and more")
	fs.IntVar(&t.MaxSessions, "max-sessions", 50, "pages of a path with an id like a session's")
}

// apply checks the flags and completes the options.
func (w *filterFlags) apply(all *options, o *crawler.Options) {
	judge := func(option string, names list, wanted func(string) bool, want string) {
		for _, x := range names {
			if !wanted(x) {
				all.badItem(option, x, want)
			}
		}
	}
	add := func(names list, f func(...string) filter.Match, make func(string, filter.Match) filter.Filter, rule string, wanted func(string) bool, want string) {
		if judge(rule, names, wanted, want); len(names) > 0 {
			o.Rules = append(o.Rules, make(rule, f(names...)))
		}
	}
	isScheme := func(x string) bool { return slices.Contains([]string{"http", "https", "ftp", "gopher"}, x) }
	isName := func(x string) bool {
		_, err := hostkey.Spelled(x)
		return err == nil && !strings.HasPrefix(x, ".") && !strings.Contains(x, "*")
	}
	isDomain := func(x string) bool { return isName(strings.TrimPrefix(x, ".")) }
	isEnd := func(x string) bool { return !strings.ContainsAny(strings.TrimPrefix(x, "."), "./*") }
	const name, end = "want a name without scheme, port, path and *, as in www.example.org", "want what comes after the last dot of a path, as in jpg"
	if i := slices.Index(w.ext, "-"); i >= 0 {
		w.ext[i] = ""
	}
	add(w.schemes, filter.Scheme, filter.Allow, "schemes", isScheme, "want http, https, ftp or gopher")
	add(w.denyHosts, filter.Host, filter.Deny, "deny-hosts", isName, name)
	add(w.denyDomains, filter.Domain, filter.Deny, "deny-domains", isDomain, name)
	add(w.ext, filter.Extension, filter.Allow, "ext", isEnd, end)
	add(w.denyExt, filter.Extension, filter.Deny, "deny-ext", isEnd, end)
	isType := func(x string) bool {
		top, sub, _ := strings.Cut(x, "/")
		return top != "" && sub != "" && !strings.ContainsAny(sub, "/; ")
	}
	judge("content-types", w.types, isType, "want types as in text/html or image/*")
	if w.maxQuery > 0 {
		o.Rules = append(o.Rules, filter.MaxQuery(w.maxQuery))
	}
	o.Traps.MaxParams = w.maxParams
	if len(w.types) > 0 {
		o.Responses = append(o.Responses, filter.ContentTypes(w.types...))
	}
	if w.maxLength > 0 {
		o.Responses = append(o.Responses, filter.MaxLength(int64(w.maxLength)))
	}
	t := &o.Traps
	for _, x := range []struct {
		name string
		n    int
	}{
		{"max-segments", t.MaxSegments}, {"max-repeats", t.MaxRepeats}, {"max-per-pattern", t.MaxPerPattern},
		{"max-calendar", t.MaxCalendar}, {"max-facets", t.MaxFacets}, {"max-sessions", t.MaxSessions},
	} {
		all.badIf(x.n < 1, "want > 0", x.name)
	}
	all.badIf(w.maxQuery < 0, "want >= 0", "max-query")
	all.badIf(w.maxParams < 0, "want >= 0", "max-params")
}
