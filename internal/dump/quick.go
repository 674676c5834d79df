// This file reads the lines that are by far the most frequent, of URLs, without
// the JSON decoder. Whatever is out of the ordinary is left to that.

package dump

import "bytes"

// quick reads a line {"url":"...",...} whose other members are whole numbers. It
// reports false, and has changed nothing, if the line is anything else.
func (l *line) quick(text []byte) bool {
	rest, ok := bytes.CutPrefix(text, []byte(`{"url":"`))
	if !ok {
		return false
	}
	url, rest, ok := quickText(rest)
	if !ok {
		return false
	}
	var q line
	for len(rest) > 1 && rest[0] == ',' && rest[1] == '"' {
		var name []byte
		if name, rest, ok = quickText(rest[2:]); !ok || len(rest) < 2 || rest[0] != ':' {
			return false
		}
		var n int
		if n, rest, ok = quickNumber(rest[1:]); !ok {
			return false
		}
		switch string(name) {
		case "crawl":
			q.Crawl = uint32(n)
		case "priority":
			q.Priority = n
		case "depth":
			q.Depth = n
		case "finished":
			q.Finished = n
		case "fails":
			q.Fails = n
		case "visits":
			q.Visits = n
		case "changes":
			q.Changes = n
		default:
			return false
		}
	}
	if len(rest) != 1 || rest[0] != '}' {
		return false
	}
	s := string(url)
	q.URL = &s
	*l = q
	return true
}

// quickText reads a string up to its end, if it needs no decoding.
func quickText(p []byte) (text, rest []byte, ok bool) {
	for i, c := range p {
		switch {
		case c == '"':
			return p[:i], p[i+1:], true
		case c < ' ' || c == '\\':
			return nil, nil, false
		}
	}
	return nil, nil, false
}

// quickNumber reads a number of at most 9 digits.
func quickNumber(p []byte) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(p) && i < 10 && p[i] >= '0' && p[i] <= '9' {
		n = 10*n + int(p[i]-'0')
		i++
	}
	if i == 0 || i > 9 || i > 1 && p[0] == '0' {
		return 0, nil, false
	}
	return n, p[i:], true
}
