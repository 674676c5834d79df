// This file runs suites about URLs: urltestdata*.json, toascii*.json, resolve*.json,
// urlnorm*.json and psl*.json.

package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

const (
	otherScheme = "not http, https or ftp: a Normalizer refuses it by design"
	inDNS       = "there are such names in DNS, and the URL Standard is about to accept them"
)

type urlCase struct {
	Input, Href string
	Base        *string
	Failure     bool
}

// runURLs resolves each case without rules, according to the URL Standard.
func runURLs(r *report, c urlCase) error {
	var n urlnorm.Normalizer
	base := ""
	if c.Base != nil {
		base = *c.Base
	}
	id := fmt.Sprintf("%q on %q", c.Input, base)
	got, err := resolve(&n, base, c.Input)
	scheme, _, _ := strings.Cut(c.Href, ":")
	switch {
	case c.Failure && errors.Is(err, urlnorm.ErrScheme):
		referenceCase(r, id, base, c.Input, "")
	case c.Failure && err != nil, !c.Failure && err == nil && got == c.Href:
		r.add(id, passed, "")
	case c.Failure && strings.Contains(got, "xn--"):
		r.add(id, deviates, inDNS)
	case !c.Failure && scheme != "http" && scheme != "https" && scheme != "ftp":
		if err == nil {
			r.add(id, failed, fmt.Sprintf("got %q, want an error: %s", got, otherScheme))
		} else {
			referenceCase(r, id, base, c.Input, c.Href)
		}
	case !c.Failure && err != nil && base != "" && !usable(&n, base):
		referenceCase(r, id, base, c.Input, c.Href)
	default:
		r.add(id, failed, fmt.Sprintf("got %q, %v; want %q", got, err, c.Href))
	}
	return nil
}

func resolve(n *urlnorm.Normalizer, base, ref string) (string, error) {
	if base == "" {
		return n.Normalize(ref)
	}
	return n.Resolve(base, ref)
}

// referenceCase handles a case that a Normalizer refuses for its scheme, by resolving it as a
// reference.
func referenceCase(r *report, id, base, ref, want string) {
	if got, err := urlnorm.Reference(base, ref); got == want {
		r.add(id, passed, "")
	} else {
		r.add(id, deviates, fmt.Sprintf("%s; urlnorm.Reference: %q, %v", otherScheme, got, err))
	}
}

func usable(n *urlnorm.Normalizer, base string) bool {
	_, err := n.Base(base)
	return err == nil
}

type resolveFile struct {
	Base  string
	Cases []struct {
		ID, Base, Ref, Out string
	}
}

func runResolve(r *report, file resolveFile) error {
	var n urlnorm.Normalizer
	for _, c := range file.Cases {
		c.Base = cmp.Or(c.Base, file.Base)
		resolveCase(r, &n, fmt.Sprintf("%q on %q", c.Ref, c.Base), c.Base, c.Ref, c.Out)
	}
	return nil
}

func resolveCase(r *report, n *urlnorm.Normalizer, id, base, ref, want string) {
	got, err := resolve(n, base, ref)
	switch {
	case errors.Is(err, urlnorm.ErrScheme):
		referenceCase(r, id, base, ref, want)
	case err != nil:
		r.add(id, failed, err.Error())
	case got == want+"/" && strings.Count(want, "/") == 2:
		r.add(id, deviates, "the URL Standard gives an empty path its slash: "+got)
	default:
		r.expect(id, want, got)
	}
}

type registrableFile struct {
	Cases []struct{ Host, Registrable string }
}

// runRegistrable checks registrable domains: null where a host has none.
func runRegistrable(r *report, file registrableFile) error {
	var n urlnorm.Normalizer
	for _, c := range file.Cases {
		want := ""
		if c.Registrable != "" { // in Unicode or punycode
			u, err := n.Normalize("http://" + c.Registrable)
			if err != nil {
				return fmt.Errorf("%q: %w", c.Registrable, err)
			}
			want = strings.Trim(strings.TrimPrefix(u, "http:"), "/")
		}
		got, _ := urlnorm.RegistrableDomain(c.Host)
		r.expect(c.Host, want, got)
	}
	return nil
}

type asciiCase struct{ Input, Output string }

// runToASCII reads names of hosts: null where the URL Standard refuses one.
func runToASCII(r *report, c asciiCase) error {
	var n urlnorm.Normalizer
	got, _ := n.Normalize("http://" + c.Input + "/")
	got = strings.TrimSuffix(strings.TrimPrefix(got, "http://"), "/")
	if c.Output == "" && got == strings.ToLower(c.Input) {
		r.add(c.Input, deviates, inDNS)
		return nil
	}
	r.expect(c.Input, c.Output, got)
	return nil
}

// deviations are the cases, by input, that urlnorm on purpose answers differently from
// crawler-commons.
var deviations = map[string]struct{ got, reason string }{
	"ftp:/":                           {"error", noHost},
	"http:////":                       {"error", noHost},
	"http:///////":                    {"error", noHost},
	"foo.com/index.html":              {"error", "guessing a scheme is for address bars"},
	"http://foo.com/index?a=1&b=":     {"http://foo.com/index?a=1&b=", emptyValue},
	"http://foo.com/index?b=&a=1":     {"http://foo.com/index?a=1&b=", emptyValue},
	"http://foo.com/index?&=1&a=1":    {"http://foo.com/index?=1&a=1", noName},
	"http://foo.com/index?=1&b=1&a=1": {"http://foo.com/index?=1&a=1&b=1", noName},
	"http://[::ffff:127.0.0.1]/":      {"http://[::ffff:7f00:1]/", "the URL Standard's one spelling of IPv6"},
}

const (
	noHost     = "the URL Standard calls it a failure"
	emptyValue = "servers tell b= from b"
	noName     = "servers tell =1 from nothing"
)

type normalizeFile struct {
	Normalize []struct{ ID, In, Out string }
	Invalid   []string
	Options   []struct {
		Options struct {
			Remove []string `json:"remove_params"`
			IDN    string
		}
		In, Out string
	} `json:"normalize_with_options"`
	Resolve []struct{ Base, Ref, Out string }
}

// runNormalize uses the rules that crawler-commons applies.
func runNormalize(r *report, file normalizeFile) error {
	n := urlnorm.New(append(urlnorm.Default(), urlnorm.CollapseSlashes(), urlnorm.SortQuery())...)
	for _, c := range file.Normalize {
		normalizeCase(r, n, fmt.Sprintf("%q", c.In), c.In, c.Out)
	}
	for _, in := range file.Invalid {
		id := fmt.Sprintf("invalid %q", in)
		if got, err := n.Normalize(in); err == nil {
			r.add(id, failed, fmt.Sprintf("got %q, want an error", got))
		} else {
			r.add(id, passed, "")
		}
	}
	for _, c := range file.Options {
		id := fmt.Sprintf("%q without %q %s", c.In, c.Options.Remove, c.Options.IDN)
		if c.Options.IDN != "" {
			r.add(id, deviates, "host names in Unicode are for display, not for keys")
			continue
		}
		normalizeCase(r, urlnorm.New(append(urlnorm.Default(), urlnorm.DropParams(c.Options.Remove...))...), id, c.In, c.Out)
	}
	var parse urlnorm.Normalizer
	for _, c := range file.Resolve {
		resolveCase(r, &parse, fmt.Sprintf("%q on %q", c.Ref, c.Base), c.Base, c.Ref, c.Out)
	}
	return nil
}

func normalizeCase(r *report, n *urlnorm.Normalizer, id, in, want string) {
	got, err := n.Normalize(in)
	if err != nil {
		got = "error"
	}
	d, known := deviations[in]
	switch {
	case err == nil && got == want:
		r.add(id, passed, "")
	case errors.Is(err, urlnorm.ErrScheme) && strings.HasPrefix(in, "file:"):
		r.add(id, deviates, otherScheme)
	case known && got == d.got:
		r.add(id, deviates, fmt.Sprintf("%s, crawler-commons %q: %s", got, want, d.reason))
	default:
		r.add(id, failed, fmt.Sprintf("got %q, %v; want %q", got, err, want))
	}
}
