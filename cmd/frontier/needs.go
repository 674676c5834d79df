// This file reports options that have no effect without others. It does not know their meaning.

package main

import "slices"

// need states that options need another: any of beside.
type need struct {
	options []string
	beside  []beside
}

// beside is an option with a value, or, if unless is set, with a value other than that.
type beside struct{ option, unless string }

// crawlNeeds are the needs of a crawl's options. All others take effect alone.
var crawlNeeds = []need{
	{[]string{"sync", "checkpoint-dir"}, []beside{{"dir", ""}}},
	{[]string{"checkpoint-every", "checkpoint-keep"}, []beside{{"checkpoint-dir", ""}}},
	{[]string{"frontier-crawl", "frontier-token"}, []beside{{"frontier", ""}}},
	{[]string{"scope-domains", "scope-also"}, []beside{{"scope-hosts", "*"}}},
	{[]string{"max-segments", "max-repeats", "max-per-pattern", "max-calendar", "max-facets", "max-sessions"}, []beside{{"no-trap-guards", "true"}}},
	{[]string{"group-delay", "group-concurrency", "group-ipv6-bits", "group-exempt"}, []beside{{"no-groups", "true"}}},
	{[]string{"retry-wait"}, []beside{{"retry-tries", "1"}}},
	{[]string{"limit-period"}, []beside{{"limit-pages", ""}, {"limit-bytes", ""}, {"limit-errors", ""}}},
	{[]string{"proxy-lookup"}, []beside{{"proxy", ""}, {"proxy-for", ""}}},
	{[]string{"keep-alive"}, []beside{{"no-keep-alive", "true"}}},
	{[]string{"warc-no-robots", "warc-honour-noarchive"}, []beside{{"warc", ""}}},
	{[]string{"seen-threshold", "skip-duplicates"}, []beside{{"seen", ""}}},
	{[]string{"max-sitemap"}, []beside{{"sitemaps", ""}}},
	{[]string{"page-names", "page-token", "page-token-file"}, []beside{{"page", "off"}, {"metrics-listen", ""}}},
	{[]string{"recrawl-budget", "recrawl-min", "recrawl-max", "recrawl-probe", "recrawl-prior", "recrawl-new-min", "recrawl-new-max",
		"recrawl-min-change", "recrawl-report"}, []beside{{"recrawl", ""}}},
}

// serveNeeds are the needs of a server's options.
var serveNeeds = []need{
	{[]string{"grpc-wait", "grpc-reflection"}, []beside{{"grpc", "off"}}},
	{[]string{"client"}, []beside{{"client-ca", ""}}},
	{[]string{"node", "fleet-peers", "fleet-port", "fleet-ttl", "fleet-partitions", "fleet-engine", "fleet-log", "fleet-cert", "fleet-key", "fleet-ca"}, []beside{{"fleet", ""}}},
}

// routeNeeds are the needs of a router's options.
var routeNeeds = []need{{[]string{"part-grpc"}, []beside{{"grpc", "off"}}}}

// met reports whether the need is satisfied.
func (b beside) met(o *options) bool {
	x := o.find(b.option)
	if b.unless == "" {
		return !slices.Contains([]string{"", "0", "0s", "false"}, x.Value.String())
	}
	l, _ := x.now.([]string)
	return x.Value.String() != b.unless && !slices.Contains(l, b.unless)
}

// judgeNeeds reports given options without an effect, and silences them. It does not report an option of
// the file if a flag has changed the option that it needs.
func (o *options) judgeNeeds(all []need) {
	for _, n := range all {
		if slices.ContainsFunc(n.beside, func(b beside) bool { return b.met(o) }) {
			continue
		}
		for _, name := range n.options {
			o.silence(name)
			if x := o.find(name); x.from != fromDefault && !x.faulty && o.says(name) && !slices.ContainsFunc(n.beside, func(b beside) bool { return o.stronger(b.option, name) }) {
				o.needs(name, n.beside)
			}
		}
	}
}

// needs reports an option without an effect.
func (o *options) needs(name string, others []beside) {
	names := []string{name}
	text := o.shown(name) + " needs "
	for i, b := range others {
		names = append(names, b.option)
		if i > 0 {
			text += " or "
		}
		switch text += o.shown(b.option); b.unless {
		case "":
		case "true":
			text = o.shown(name) + " means nothing beside " + o.shown(b.option)
		default:
			text += " other than " + b.unless
		}
	}
	o.fault(names, "%s", text)
}
