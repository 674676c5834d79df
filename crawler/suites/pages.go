// This file runs suites about the content of pages: charset*.json, srcset*.json and
// percent_encoding*.json.

package main

import (
	"cmp"
	"fmt"
	"html"
	"maps"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// Why some cases of the charset suite cannot pass.
const (
	needsScript = "the meta element is written by a script"
	insideStyle = "golang.org/x/net looks for no meta elements in the text of a style element"
	beyondScan  = "declared after the 1,024 bytes of the HTML Standard"
)

type charsetFile struct {
	Cases []struct {
		ID       string
		Data     []byte `json:"data_b64"`
		Encoding string
	}
}

func runCharset(r *report, file charsetFile) error {
	for i, c := range file.Cases {
		c.ID = cmp.Or(c.ID, fmt.Sprintf("cases/%d", i))
		want, got := strings.ToLower(c.Encoding), link.Charset(c.Data, "")
		switch {
		case got == want:
			r.add(c.ID, passed, "")
		case declaredBeyond(c.Data, got):
			r.add(c.ID, deviates, fmt.Sprintf("got %s, suite %s: %s", got, want, beyondScan))
		case strings.Contains(string(c.Data), "<style"):
			r.add(c.ID, deviates, fmt.Sprintf("got %s, suite %s: %s", got, want, insideStyle))
		case strings.Contains(string(c.Data), "<script"):
			r.add(c.ID, deviates, fmt.Sprintf("got %s, suite %s: %s", got, want, needsScript))
		default:
			r.add(c.ID, failed, fmt.Sprintf("got %s, want %s", got, want))
		}
	}
	return nil
}

// declaredBeyond reports whether nothing is declared where the standard looks, but
// something after.
func declaredBeyond(data []byte, got string) bool {
	const prescan = 1024
	return len(data) > prescan && got == "windows-1252" && strings.Contains(strings.ToLower(string(data[prescan-64:])), "charset")
}

type srcsetFile struct {
	Cases []struct {
		ID, Srcset string
		Want       string `json:"current_src"` // what browsers choose; empty: nothing
	}
}

func runSrcset(r *report, file srcsetFile) error {
	for i, c := range file.Cases {
		id := cmp.Or(c.ID, fmt.Sprintf("cases/%d %q", i, c.Srcset))
		got, err := candidates(c.Srcset)
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
		if c.Want == "" && len(got) == 0 || c.Want != "" && slices.Contains(got, c.Want) {
			r.add(id, passed, "")
		} else {
			r.add(id, failed, fmt.Sprintf("got %q, want %q", got, c.Want))
		}
	}
	return nil
}

// candidates returns what link finds in a srcset. Most URLs of the suite are data URLs, which a
// crawler does not follow, so each is replaced by one that is followed.
func candidates(srcset string) ([]string, error) {
	const prefix = "http://candidate.example/"
	doc := `<img srcset="` + html.EscapeString(strings.ReplaceAll(srcset, "data:", prefix)) + `">`
	page, err := link.Extract(strings.NewReader(doc), "text/html; charset=utf-8", "http://page.example/", link.Options{})
	var got []string
	for _, l := range page.Links {
		got = append(got, strings.ReplaceAll(l.Raw, prefix, "data:"))
	}
	return got, err
}

type encodingCase struct {
	Input  string
	Output map[string]string
}

// runPercentEncoding checks queries: link encodes them in the page's encoding.
func runPercentEncoding(r *report, c encodingCase) error {
	for _, name := range slices.Sorted(maps.Keys(c.Output)) {
		got, err := encodeQuery(c.Input, name)
		if err != nil {
			return err
		}
		id := fmt.Sprintf("%q in %s", c.Input, name)
		if name == "iso-2022-jp" && got != c.Output[name] && strings.ContainsAny(c.Input, "\u00a5\u203e") {
			r.add(id, deviates, "golang.org/x/text does not write JIS X 0201 Roman: "+got)
			continue
		}
		r.expect(id, c.Output[name], got)
	}
	return nil
}

// encodeQuery returns the query of a link with this text on a page in this
// encoding.
func encodeQuery(text, charset string) (string, error) {
	var b strings.Builder
	for _, c := range text {
		fmt.Fprintf(&b, "&#%d;", c)
	}
	page, err := link.Extract(strings.NewReader(`<a href="/?`+b.String()+`">`), "text/html; charset="+charset, "http://page.example/",
		link.Options{Normalizer: &urlnorm.Normalizer{}})
	if err != nil || len(page.Links) != 1 {
		return "", fmt.Errorf("%q in %s: no link: %w", text, charset, err)
	}
	_, query, _ := strings.Cut(page.Links[0].URL, "?")
	return query, nil
}
