// This file reads bodies within limits and undoes gzip.

package fetch

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// readBody reads at most limit bytes of the body, as sent and as decoded, into
// res. It reports whether the server's answer was read to its end.
func readBody(resp *http.Response, limit int64, res *Result) (done bool, err error) {
	wire := &wireReader{r: resp.Body, left: limit + 1}
	defer func() { res.Bytes = limit + 1 - wire.left }()
	var src io.Reader = wire
	gz := false
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "gzip", "x-gzip":
		r := bufio.NewReader(wire)
		if magic, err := r.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
			gz = true
			if src, err = newGunzip(r); err != nil {
				return false, bodyError(err, wire)
			}
		} else {
			src = r // plain after all: some servers declare what they do not do
		}
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
	}
	var buf bytes.Buffer
	if n := resp.ContentLength; n > 0 && !gz {
		buf.Grow(int(min(n, limit, 1<<20)) + bytes.MinRead)
	}
	_, err = io.Copy(&buf, io.LimitReader(src, limit+1))
	res.Body = buf.Bytes()
	if int64(len(res.Body)) > limit {
		res.Body, res.Truncated = res.Body[:limit], true
		return false, nil
	}
	if wire.left <= 0 {
		res.Truncated = true
		return false, nil
	}
	if err != nil {
		return false, bodyError(err, wire)
	}
	return wire.ended, nil
}

// bodyError tells the network's errors from the decoder's.
func bodyError(err error, wire *wireReader) error {
	if wire.err != nil {
		return wire.err
	}
	return decodeError{err}
}

// wireReader counts what the server sent and remembers how it ended.
type wireReader struct {
	r     io.Reader
	left  int64
	ended bool  // the server's end was reached
	err   error // the network's error
}

func (w *wireReader) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, io.EOF
	}
	n, err := w.r.Read(p[:min(int64(len(p)), w.left)])
	w.left -= int64(n)
	if err == io.EOF {
		w.ended = true
	} else if err != nil {
		w.err = err
	}
	return n, err
}

// gunzip reads all members of a gzip stream. Bytes after a member that begin no
// other are ignored, as browsers do.
type gunzip struct {
	*gzip.Reader
	any bool
}

func newGunzip(r io.Reader) (*gunzip, error) {
	z, err := gzip.NewReader(r)
	return &gunzip{Reader: z}, err
}

func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	g.any = g.any || n > 0
	if g.any && errors.Is(err, gzip.ErrHeader) {
		err = io.EOF
	}
	return n, err
}
