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
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
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

// codings lists the codings of a Content-Encoding, in order of application. It returns false if one
// of them is unknown, or there are too many.
func codings(h http.Header) ([]string, bool) {
	var out []string
	for word := range strings.SplitSeq(strings.ToLower(strings.Join(h.Values("Content-Encoding"), ",")), ",") {
		switch word = strings.TrimSpace(word); word {
		case "", "identity":
		case "gzip", "x-gzip", "br", "zstd", "deflate":
			out = append(out, word)
		default:
			return nil, false
		}
	}
	return out, len(out) <= maxCodings
}

// decoder reads the decoded content of a body; it must be released afterwards.
type decoder struct {
	io.Reader
	free []func()
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
		if err := d.undo(c); err != nil {
			d.close()
			return nil, err
		}
	}
	return d, nil
}

// undo wraps the reader in one that reverts a coding. Some servers declare codings that they do not
// apply; data that does not look encoded is returned unchanged.
func (d *decoder) undo(coding string) error {
	r := bufio.NewReader(d.Reader)
	head, _ := r.Peek(4)
	isGzip := bytes.HasPrefix(head, []byte{0x1f, 0x8b})
	isZstd := bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		len(head) == 4 && head[0]&0xf0 == 0x50 && head[1] == 0x2a && head[2] == 0x4d && head[3] == 0x18 // a frame to skip
	d.Reader = r
	switch {
	case len(head) == 0:
	case coding == "br":
		d.brotli(r)
	case isGzip && coding != "zstd": // some say deflate and mean gzip
		z, err := gzip.NewReader(r)
		d.Reader = &gunzip{Reader: z}
		return err
	case isZstd && coding == "zstd":
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return err
		}
		d.Reader, d.free = z, append(d.free, z.Close)
	case coding == "deflate" && len(head) >= 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0:
		z, err := zlib.NewReader(r)
		d.Reader = z
		return err
	case coding == "deflate" && !bytes.HasPrefix(head, []byte("<")): // without zlib's header, as some send it
		d.Reader = flate.NewReader(r)
	}
	return nil
}

// brotliReaders hold 600 kB each.
var brotliReaders = sync.Pool{New: func() any { return brotli.NewReader(nil) }}

func (d *decoder) brotli(r io.Reader) {
	z := brotliReaders.Get().(*brotli.Reader)
	_ = z.Reset(r) // nil always
	d.Reader = z
	d.free = append(d.free, func() {
		_ = z.Reset(strings.NewReader(""))
		brotliReaders.Put(z)
	})
}

// gunzip reads all members of a gzip stream. Bytes after a member that begin no
// other are ignored, as browsers do.
type gunzip struct {
	*gzip.Reader
	any bool
}

func (g *gunzip) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	g.any = g.any || n > 0
	if g.any && errors.Is(err, gzip.ErrHeader) {
		err = io.EOF
	}
	return n, err
}
