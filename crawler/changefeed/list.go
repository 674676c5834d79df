// This file reads lists of URLs: text, and the bodies of IndexNow requests.

package changefeed

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/urllist"
)

// maxBody is the maximum size of the body of an IndexNow request: the protocol allows 10,000 URLs,
// mostly of up to 2,048 bytes.
const maxBody = 64 << 20

// item is a URL of a list, or the fault of a line.
type item struct {
	line int // from 1
	url  string
	host string // that it must be of; empty: any
	err  error
}

// read yields the items of a list. An error of its reader, or of the syntax of JSON, is
// the last. No body may be longer than most bytes.
func read(r io.Reader, most int64) iter.Seq2[item, error] {
	return func(yield func(item, error) bool) {
		in := bufio.NewReader(urllist.NewReader(r))
		line, first, err := skipSpace(in)
		switch {
		case errors.Is(err, io.EOF): // there is nothing
		case err != nil:
			yield(item{line: line}, err)
		case first == '{':
			readBodies(in, line, most, yield)
		default:
			readText(in, line, yield)
		}
	}
}

// skipSpace skips white space, and returns the line of the first other byte.
func skipSpace(in *bufio.Reader) (line int, first byte, err error) {
	for line = 1; ; {
		c, err := in.ReadByte()
		if err != nil {
			return line, 0, err
		}
		switch c {
		case '\n':
			line++
		case ' ', '\t', '\r':
		default:
			return line, c, in.UnreadByte()
		}
	}
}

// readText reads one URL a line.
func readText(in *bufio.Reader, line int, yield func(item, error) bool) {
	for l, err := range urllist.Lines(in, frontier.MaxURL) {
		if !yield(item{line: line - 1 + l.Number, url: l.URL, err: l.Err}, err) {
			return
		}
	}
}

// readBodies reads one JSON object after the other.
func readBodies(in *bufio.Reader, line int, most int64, yield func(item, error) bool) {
	lines := &lineReader{r: in, line: line}
	d := json.NewDecoder(lines)
	for {
		lines.bound = d.InputOffset() + most
		items, err := readBody(d, lines)
		for _, x := range items {
			if !yield(x, nil) {
				return
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				yield(item{line: lines.at(d.InputOffset())}, err)
			}
			return
		}
	}
}

// readBody reads the body of a request; after an error it ignores the rest. io.EOF means that there
// is none.
func readBody(d *json.Decoder, lines *lineReader) (items []item, err error) {
	if err := delim(d, '{'); err != nil {
		return nil, err // io.EOF between bodies
	}
	host := ""
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil {
			break
		}
		switch key {
		case "host":
			err = d.Decode(&host)
		case "urlList":
			items, err = readURLs(d, lines, items)
		default: // key, keyLocation, and future members
			var other json.RawMessage
			err = d.Decode(&other)
		}
	}
	if err == nil {
		err = delim(d, '}')
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if host == "" && len(items) > 0 && err == nil {
		err = errors.New(`a body without "host"`)
		items = nil
	}
	for i := range items {
		items[i].host = host
	}
	return items, err
}

// readURLs appends the URLs of an array.
func readURLs(d *json.Decoder, lines *lineReader, items []item) ([]item, error) {
	if err := delim(d, '['); err != nil {
		return items, err
	}
	for d.More() {
		var u any
		if err := d.Decode(&u); err != nil {
			return items, err
		}
		x := item{line: lines.at(d.InputOffset())}
		var ok bool
		if x.url, ok = u.(string); !ok || x.url == "" {
			x.err = errors.New("want a URL")
		}
		items = append(items, x)
	}
	return items, delim(d, ']')
}

func delim(d *json.Decoder, want json.Delim) error {
	t, err := d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("want %q", want.String())
	}
	return err
}

// lineReader maps bytes to lines, for increasing offsets.
type lineReader struct {
	r     io.Reader
	line  int     // line of the byte last queried
	read  int64   // bytes so far
	bound int64   // of them at most
	ends  []int64 // offsets of the ends of lines from there on
}

// errLarge is the fault of a body that is too long.
var errLarge = errors.New("a body of more than 64 MiB: lists as long as that are taken as text, one URL a line")

func (l *lineReader) Read(p []byte) (int, error) {
	if l.read >= l.bound {
		return 0, errLarge
	}
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// at returns the line of the byte before an offset, which must not be less than that of the
// previous call.
func (l *lineReader) at(offset int64) int {
	n := 0
	for n < len(l.ends) && l.ends[n] < offset-1 {
		n++
	}
	l.line, l.ends = l.line+n, l.ends[n:]
	return l.line
}
