// This file asks about URLs: a reference on a base, and whether the normal form of the result is a serialized URL.

package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"unicode"

	"github.com/seed-7440039f/frontier/crawler/urlnorm"
)

// urlQuestion asks for Ref on Base, and for Normal, our normal form of it, if there is one.
type urlQuestion struct {
	Base   string `json:"base"`
	Ref    string `json:"ref"`
	Normal string `json:"normal"`
}

// madeUp are the URLs to change where no file has real ones.
var madeUp = []string{
	"http://a.example/", "https://www.a.example/b/c.html?d=e&f=g#h", "http://user:password@a.example:8080/b;c=d/../e", "ftp://a.example/b//c/",
	"http://b\u00fccher.example/stra\u00dfe?q=\u00e4", "http://192.168.0.1/a", "http://[2001:db8::1]:80/", "HTTP://A.EXAMPLE:80/%7Eb", "mailto:a@b.example",
	"javascript:alert(1)", "data:text/html,a", "file:///C:/a", "x://a/b", "about:blank", "a", "/a/b", "//a.example/b", "?a", "#a", "../a", "./a/./b", "",
}

// odd is what is put into URLs.
var odd = []string{
	`\`, "/", "//", "///", "/../", "/./", "..", ".", "@", ":", "?", "#", "%", "%2", "%2e", "%2E%2e", "%2F", "%5c", "%00", "%41", "%C3%A4", "%E4", "%zz", " ", "\t", "\n", "\r",
	"\x00", "\x01", "\x1f", "\x7f", "\"", "<", ">", "`", "{", "}", "|", "^", "'", "[", "]", "*", "~", "!", "$", "&", "(", ")", "+", ",", ";", "=", "_", "-", "--", "xn--", "xn--a", "xn--bcher-kva",
	"xn--ls8h", "[::1]", "[::ffff:1.2.3.4]", "[1:2:3:4:5:6:7:8]", "[v1.a]", "[::1%25eth0]", "127.1", "0x7f", "0x7f.1", "017700000001", "4294967295", "4294967296", "1.2.3.4", "1.2.3.4.", "1.2.3.4.5", "256.1",
	"09", "0x", ":80", ":443", ":21", ":0", ":65535", ":65536", ":080", ":a", "http:", "https:", "http:/", "https://", "ftp:", "file:", "mailto:", "javascript:", "data:", "C|", "C:", "/C|/", "x:",
	"\u00e4", "\u00df", "\u1e9e", "\u0130", "\u0131", "\u3002", "\uff0e", "\uff0f", "\uff1a", "\uff03", "\uff05", "\u2100", "\u00ad", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\ufffd", "\U0001f600",
	"\u0308", "e\u0301", "\u05d0", "\u0627", "\u06f0", "\u30fc", "\u212a", "\u017f", "\u2488", "\ufdd0", "\U000e0001", "\u4f8b\u3048", "\u65e5\u672c", "\u0e01", "\u00a0", "\u2028", "\u0080", "\u2260", "\uff0c",
}

func readURLs(file string) ([]string, error) {
	if file == "" {
		return madeUp, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	urls := madeUp
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		urls = append(urls, strings.ToValidUTF8(lines.Text(), "\ufffd"))
	}
	return urls, lines.Err()
}

func makeURL(r *rand.Rand, from []string) question {
	q := &urlQuestion{Ref: change(r, from)}
	if r.IntN(2) == 0 {
		q.Base = change(r, from)
	} else if r.IntN(8) > 0 {
		q.Base = pick(r, from)
	}
	q.Normal, _ = urlnorm.New().Resolve(q.Base, q.Ref)
	return q
}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// change returns a URL, or a made-up one, with a few changes.
func change(r *rand.Rand, from []string) string {
	if r.IntN(3) == 0 {
		from = madeUp
	}
	s := []rune(pick(r, from))
	for range r.IntN(4) {
		i := r.IntN(len(s) + 1)
		j := min(len(s), i+r.IntN(8))
		switch r.IntN(6) {
		case 0: // remove
			s = append(s[:i:i], s[j:]...)
		case 1: // repeat
			s = append(s[:j:j], s[i:]...)
		case 2: // replace
			s = append(append(s[:i:i], []rune(pick(r, odd))...), s[j:]...)
		case 3: // join with another
			s = append(s[:i:i], []rune(pick(r, from))...)
		default: // insert
			s = append(append(s[:i:i], []rune(pick(r, odd))...), s[i:]...)
		}
	}
	return string(s)
}

func (q *urlQuestion) judge(answer []byte) string {
	var theirs struct{ Href, Alone, Again string }
	if err := json.Unmarshal(answer, &theirs); err != nil {
		return unjudged + err.Error()
	}
	if ours, err := urlnorm.Reference(q.Base, q.Ref); ours != theirs.Href {
		return q.verdict("Reference", ours, err, theirs.Href)
	}
	var n urlnorm.Normalizer
	want := theirs.Href
	if scheme, _, _ := strings.Cut(want, ":"); scheme != "http" && scheme != "https" && scheme != "ftp" {
		want = "" // a Normalizer refuses it
	}
	if ours, err := n.Resolve(q.Base, q.Ref); ours != want {
		if want == "" && ours == theirs.Alone {
			return "we: a link needs no base to be absolute"
		}
		return q.verdict("Resolve", ours, err, want)
	}
	if theirs.Again != q.Normal {
		return q.verdict("normal form", q.Normal, nil, theirs.Again)
	}
	return ""
}

// verdict judges a difference.
func (q *urlQuestion) verdict(what, ours string, err error, theirs string) string {
	switch {
	case errors.Is(err, urlnorm.ErrTooLong):
		return "we: longer than MaxLength"
	case ours == "" && strings.ContainsFunc(q.Base+q.Ref, func(r rune) bool { return unicode.In(r, unicode.Hebrew, unicode.Arabic) }):
		return "we: ada judges each label alone, but beside one from right to left all must keep the rule (RFC 5893 section 2)"
	}
	return unjudged + what + ": " + ours
}
