// This file undoes content codings: gzip, brotli, zstd, deflate.

package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"
)

const (
	// acceptEncoding is sent with every request.
	acceptEncoding = "gzip, br, zstd"
	// maxCodings is how many codings, one in the other, are undone.
	maxCodings = 3
	// maxWindow is the maximum memory of a zstd stream (the limit of RFC 9659).
	maxWindow = 8 << 20
)

// codings lists the words of a Content-Encoding, in order of application. supported is how many of
// them can be undone.
func codings(h http.Header) (words []string, supported int) {
	for word := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")), ",") {
		switch word = strings.TrimSpace(word); word {
		case "", "identity":
			continue
		case "gzip", "x-gzip", "br", "zstd", "deflate":
			supported++
		}
		words = append(words, word)
	}
	return words, supported
}

// Coded returns the Content-Encoding of a body that is still encoded; empty if it is not. Unknown codings
// have no effect (Fetch Standard, "handle content codings"), and some servers name codings that they do
// not apply; so head, the first 512 bytes of the body, decides. The header comes from a Result.
func Coded(h http.Header, head []byte) string {
	words, _ := codings(h)
	if len(words) == 0 || !binary(head) {
		return ""
	}
	return strings.Join(words, ", ")
}

// binary reports whether bytes are no text (MIME Sniffing Standard, "binary data byte").
func binary(head []byte) bool {
	for _, mark := range []string{"\xfe\xff", "\xff\xfe", "\xef\xbb\xbf"} {
		if bytes.HasPrefix(head, []byte(mark)) {
			return false
		}
	}
	return slices.ContainsFunc(head, func(c byte) bool { return c < ' ' && !strings.ContainsRune("\t\n\f\r\x1b", rune(c)) })
}

// decoder reads the decoded content of a body; it must be released afterwards.
type decoder struct {
	io.Reader
	free []func()
	left []string // codings that were not undone
}

func (d *decoder) close() {
	for _, f := range slices.Backward(d.free) {
		f()
	}
}

// newDecoder reverts codings, starting with the one applied last.
func newDecoder(r io.Reader, applied []string) (*decoder, error) {
	d := &decoder{Reader: r}
	for _, c := range slices.Backward(applied) {
		done, err := d.undo(c)
		if err != nil {
			d.close()
			return nil, err
		}
		if !done {
			d.left = append(d.left, c)
		}
	}
	slices.Reverse(d.left)
	return d, nil
}

// probed is how much of a body shows whether it is encoded.
const probed = 512

// undo wraps the reader in one that reverts a coding. It returns false for an unknown one, and for
// data that does not begin as encoded: some servers declare codings that they do not apply.
func (d *decoder) undo(coding string) (bool, error) {
	r := bufio.NewReader(d.Reader)
	head, _ := r.Peek(probed)
	isGzip := bytes.HasPrefix(head, []byte{0x1f, 0x8b})
	isZstd := bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) >= 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18 // a frame to skip
	d.Reader = r
	switch {
	case len(head) == 0:
	case coding == "br":
		return d.brotli(r, head), nil
	case isGzip && (coding == "gzip" || coding == "x-gzip" || coding == "deflate"): // some say deflate and mean gzip
		z := &gunzip{in: r}
		d.Reader = z
		return true, z.header()
	case isZstd && coding == "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return false, err
		}
		d.Reader, d.free = z, append(d.free, z.Close)
		return true, nil
	case coding == "deflate" && len(head) >= 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0:
		d.Reader = flate.NewReader(r)
		_, err := r.Discard(2)
		return true, err
	case coding == "deflate" && begins(flate.NewReader(bytes.NewReader(head)), head): // without zlib's header, as some send it
		d.Reader = flate.NewReader(r)
		return true, nil
	}
	return false, nil
}

// begins reports whether a decoder of head finds something.
func begins(z io.Reader, head []byte) bool {
	n, err := z.Read(make([]byte, 1))
	return n > 0 || err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) && binary(head)
}

// brotliReaders hold 600 kB each.
var brotliReaders = sync.Pool{New: func() any { return brotli.NewReader(nil) }}

func (d *decoder) brotli(r io.Reader, head []byte) bool {
	z := brotliReaders.Get().(*brotli.Reader)
	d.free = append(d.free, func() {
		_ = z.Reset(strings.NewReader(""))
		brotliReaders.Put(z)
	})
	_ = z.Reset(bytes.NewReader(head)) // nil always
	if !begins(z, head) {
		return false
	}
	_ = z.Reset(r)
	d.Reader = z
	return true
}

// gunzip reads all members of a gzip stream. As in browsers, the checksum and the length after a member
// are not checked, and may be missing; bytes after it that begin no other member are ignored.
type gunzip struct {
	in *bufio.Reader
	io.Reader
}

// header skips the header of a member (RFC 1952, section 2.3).
func (g *gunzip) header() error {
	var fixed [10]byte
	if _, err := io.ReadFull(g.in, fixed[:]); err != nil {
		return noEnd(err)
	}
	if fixed[2] != 8 {
		return errors.New("gzip: not deflate")
	}
	flags := fixed[3]
	if flags&4 != 0 { // extra
		var size [2]byte
		_, err := io.ReadFull(g.in, size[:])
		if err == nil {
			_, err = g.in.Discard(int(size[0]) | int(size[1])<<8)
		}
		if err != nil {
			return noEnd(err)
		}
	}
	for _, text := range []byte{8, 16} { // name, comment
		if flags&text == 0 {
			continue
		}
		for c := byte(1); c != 0; {
			var err error
			if c, err = g.in.ReadByte(); err != nil {
				return noEnd(err)
			}
		}
	}
	if flags&2 != 0 { // checksum
		if _, err := g.in.Discard(2); err != nil {
			return noEnd(err)
		}
	}
	if z, ok := g.Reader.(flate.Resetter); ok {
		return z.Reset(g.in, nil)
	}
	g.Reader = flate.NewReader(g.in)
	return nil
}

// noEnd returns the error for data that ends too early.
func noEnd(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		n, err := g.Reader.Read(p)
		if err != io.EOF {
			return n, err
		}
		if _, err := g.in.Discard(8); err != nil {
			return n, err
		}
		if more, _ := g.in.Peek(2); !bytes.Equal(more, []byte{0x1f, 0x8b}) || g.header() != nil {
			return n, io.EOF
		}
		if n > 0 {
			return n, nil
		}
	}
}
