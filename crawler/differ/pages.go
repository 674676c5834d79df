// This file compares which attributes of which elements are links in tag soup.

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/crawler/link"
)

type pageQuestion struct {
	Page string `json:"page"`
}

// linking are the attributes that are links, by element. The pages have no others, so each link is one in the tree of its page.
var linking = map[string][]string{
	"a": {"href", "xlink:href"}, "area": {"href"}, "audio": {"src"}, "embed": {"src"}, "form": {"action"}, "frame": {"src"}, "iframe": {"src"},
	"image": {"href", "xlink:href"}, "img": {"src"}, "link": {"href"}, "object": {"data"}, "script": {"src"},
	"source": {"src"}, "track": {"src"}, "use": {"href", "xlink:href"}, "video": {"src", "poster"},
}

// noise is what stands between links.
var noise = []string{
	"text", "<", "</", "</ ", "<>", "</>", "<!", "<!-", "<!-->", "<!--", "-->", "--!>", "<!---->", "<!doctype html>", "<?", "<?xml ?>", "<![CDATA[", "]]>", "<!x>", "</x ", ">", "/>",
	"\"", "'", "=", "&", "&lt;", "&#60;", "\x00", "\n", "\t", "<p\x00", "<a", "<a ", "<img ", "<x/", "< a href=/0>", "<1>", "<\u00e4>",
}

// containers are elements that change how their contents are read.
var containers = []string{
	"html", "head", "body", "p", "div", "b", "i", "a", "button", "form", "table", "caption", "colgroup", "tbody", "tr", "td", "th", "select", "option", "optgroup",
	"ul", "li", "dl", "dd", "h1", "pre", "listing", "center", "font", "nobr", "span", "ruby", "rt", "address", "applet", "marquee", "object", "frameset",
	"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes", "noscript", "template", "plaintext",
	"svg", "math", "foreignObject", "desc", "mi", "mo", "mtext", "annotation-xml", "picture", "video", "audio", "x-y", "br", "hr", "input", "image", "keygen",
}

func makePage(r *rand.Rand) question {
	var b strings.Builder
	var open []string
	if r.IntN(2) == 0 {
		b.WriteString("<!DOCTYPE html>")
	}
	for n := range 4 + r.IntN(16) {
		switch r.IntN(9) {
		case 0, 1:
			name := pick(r, containers)
			open = append(open, name)
			b.WriteString("<" + cased(r, name) + pick(r, []string{">", ">", ">", ">", "/>", " x=y>", " >", "\n>", "", " a='>'>"}))
		case 2:
			name := pick(r, containers)
			if len(open) > 0 && r.IntN(4) > 0 {
				name = pick(r, open)
			}
			b.WriteString("</" + cased(r, name) + pick(r, []string{">", ">", ">", " >", " x=y>", "/>", "", "x>"}))
		case 3:
			b.WriteString(pick(r, noise))
		case 4:
			if r.IntN(3) == 0 {
				fmt.Fprintf(&b, "<base href=/base%d/>", n)
			}
		default:
			names := slices.Collect(keys(linking))
			name := pick(r, names)
			b.WriteString("<" + cased(r, name))
			for range 1 + r.IntN(2) {
				b.WriteString(attribute(r, pick(r, linking[name]), fmt.Sprintf("/%d", b.Len())))
			}
			b.WriteString(pick(r, []string{">", ">", ">", ">", ">", "/>", " />", "\n>", "", "<"}))
		}
	}
	return &pageQuestion{b.String()}
}

// keys yields sorted keys, so that a seed makes the same pages.
func keys[V any](m map[string]V) func(func(string) bool) {
	return slices.Values(slices.Sorted(maps.Keys(m)))
}

func cased(r *rand.Rand, name string) string {
	if r.IntN(6) == 0 {
		return strings.ToUpper(name)
	}
	return name
}

// attribute writes an attribute, well or badly.
func attribute(r *rand.Rand, name, value string) string {
	value += pick(r, []string{"", "", "", "", "?a=b", "&amp;c", "&amp", "&copy=1", "&#x41;", "&notit;", " b", "\n", "\x00", ">", "`", "\u00e4", "'", "\""})
	quote := pick(r, []string{`"`, `"`, `"`, "'", ""})
	end := quote
	if r.IntN(12) == 0 {
		end = pick(r, []string{"", `"`, "'"})
	}
	return pick(r, []string{" ", " ", " ", "\n", "/", "\t", "", "\f", " x ", " =", " \"", " " + name + " "}) +
		cased(r, name) + pick(r, []string{"=", "=", "=", "=", " = ", "=\n", "==", ""}) + quote + value + end
}

// What reading tags without their tree costs.
const (
	quoted     = "they: a quote or comment in noframes does not hide its end"
	foreignEnd = "they: where SVG and MathML end depends on the tree"
)

func (q *pageQuestion) judge(answer []byte) string {
	var theirs struct {
		Elements []struct {
			Tag, In    string
			Attributes map[string]string
		}
		Aside string
	}
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return unjudged + err.Error()
	}
	page, err := link.Extract(strings.NewReader(q.Page), "text/html; charset=utf-8", "http://page.example/", link.Options{})
	if err != nil {
		return unjudged + err.Error()
	}
	var want []string
	for _, e := range theirs.Elements {
		for _, name := range linking[e.Tag] {
			value, there := e.Attributes[name]
			if e.Tag == "source" && e.In != "audio" && e.In != "video" || !there {
				continue
			}
			want = append(want, value)
			if e.Tag == "a" {
				break // xlink:href counts without href
			}
		}
	}
	has := func(tag string) bool { return strings.Contains(strings.ToLower(q.Page), tag) }
	for _, raw := range want {
		if strings.TrimSpace(raw) != "" && !slices.ContainsFunc(page.Links, func(l link.Link) bool { return l.Raw == raw }) {
			switch {
			case has("<frameset"):
				return "they: a frameset has no elements with raw text"
			case has("<noframes"):
				return quoted
			case has("<svg"), has("<math"):
				return foreignEnd
			case has("<picture") && has("<source"):
				return "they: where a picture ends depends on the tree"
			}
			return unjudged + fmt.Sprintf("lost: %q", raw)
		}
	}
	for _, l := range page.Links {
		i := slices.Index(want, l.Raw)
		switch {
		case i >= 0 || strings.TrimSpace(l.Raw) == "":
			continue
		case l.Kind == link.Frame:
			return "both: a frame outside of a frameset is dropped from the tree"
		case has("<frameset"):
			return "both: what is around a frameset is dropped from the tree"
		case strings.Contains(theirs.Aside, l.Raw):
			return "we: a template or noframes may be shown"
		case l.Kind == link.Image && has("<image"):
			return "both: image outside of SVG"
		case l.Kind == link.Form:
			return "both: a form in a form is dropped from the tree"
		case l.Kind == link.Media && has("<source"):
			return "both: a source of neither audio nor video is without effect"
		case has("<noframes"):
			return quoted
		case has("<svg") || has("<math"):
			return foreignEnd
		case l.Kind == link.Script && has("href"):
			return "both: an href of a script counts in SVG only"
		}
		return unjudged + fmt.Sprintf("more: %q", l.Raw)
	}
	return ""
}
