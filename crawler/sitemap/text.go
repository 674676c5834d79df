// This file reads text files: one URL a line.

package sitemap

import (
	"bufio"
	"fmt"

	"github.com/seed-7440039f/frontier/internal/urllist"
)

// readText reads a file to its end, or to an error of the text's reader. Lines end in
// CR, LF or both.
func (r *Reader) readText(in *bufio.Reader) error {
	var buf []byte
	line, long := 1, false
	for !r.over {
		c, err := in.ReadByte()
		if err == nil && c == 0 {
			return ErrFormat // no text has that
		}
		if err == nil && c != '\n' && c != '\r' {
			if long = long || len(buf) == maxValue; !long {
				buf = append(buf, c)
			}
			continue
		}
		if s, err := urllist.URL(buf); long {
			r.complain(line, string(s), ErrURL)
		} else if err != nil {
			r.complain(line, string(buf), fmt.Errorf("%w: not in the file's encoding", ErrURL))
		} else if len(s) > 0 {
			r.textLine(line, string(s))
		}
		if err != nil {
			r.at = line
			return err
		}
		buf, long = buf[:0], false
		if c == '\r' {
			if next, _ := in.Peek(1); len(next) > 0 && next[0] == '\n' {
				_, _ = in.ReadByte()
			}
		}
		line++
	}
	return nil
}

func (r *Reader) textLine(line int, s string) {
	u, err := r.urls.resolve(s, "", Text)
	if err != nil {
		r.complain(line, s, err)
		return
	}
	r.emit(Entry{URL: u, Priority: 0.5, Line: line})
}
