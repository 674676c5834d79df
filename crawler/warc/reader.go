// This file reads WARC files as streams, compressed or not, its own and others'.

package warc

import (
	"bufio"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"strconv"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
)

// maxHeader is the maximum size of a record's header in bytes.
const maxHeader = 256 << 10

// source is where a record's bytes come from: the file, or one of its gzip members.
type source interface {
	io.Reader
	io.ByteScanner
}

// Reader reads the records of a file in order. It holds one header at a time; blocks are streams.
// It is not safe for concurrent use.
type Reader struct {
	// Verify checks the digests of blocks while they are read: the read that would return io.EOF
	// returns ErrDigest, wrapped, instead. Digests other than SHA-1 are not checked. Set it before
	// the first Next.
	Verify bool

	file    *counter
	zip     *gzip.Reader // nil until the first member
	member  int64        // where the gzip member being read begins
	src     source       // nil before a member, and before the first record
	zipped  bool
	started bool
	block   *blockReader // of the last record
	err     error
}

// counter counts the bytes read from a file.
type counter struct {
	*bufio.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counter) ReadByte() (byte, error) {
	b, err := c.Reader.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func (c *counter) UnreadByte() error {
	err := c.Reader.UnreadByte()
	if err == nil {
		c.n--
	}
	return err
}

// NewReader returns a Reader of a file. It detects compression from the first bytes.
func NewReader(r io.Reader) *Reader {
	return &Reader{file: &counter{Reader: bufio.NewReaderSize(r, 64<<10)}}
}

// Records returns all records, and the error that ended the file, if any.
func (r *Reader) Records() iter.Seq2[*Record, error] {
	return func(yield func(*Record, error) bool) {
		for {
			rec, err := r.Next()
			if err == io.EOF || !yield(rec, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the next record, after skipping the rest of the previous one. At the end of the file
// it returns io.EOF; other errors are an *Error with the position, and are returned again by
// further calls. For a truncated file it returns all complete records first, then ErrTorn, wrapped.
func (r *Reader) Next() (*Record, error) {
	if r.err != nil {
		return nil, r.err
	}
	rec, err := r.next()
	if err != nil {
		r.err = err
		return nil, err
	}
	return rec, nil
}

func (r *Reader) next() (*Record, error) {
	if r.block != nil {
		if _, err := io.Copy(io.Discard, r.block); err != nil && !errors.Is(err, ErrDigest) {
			return nil, err
		}
	}
	offset, err := r.begin()
	if err != nil {
		return nil, err
	}
	rec := &Record{Offset: offset}
	if err := r.header(rec); err != nil {
		return nil, &Error{offset, damaged(err)}
	}
	r.block = &blockReader{r: r, rec: rec, left: rec.Length}
	if want, ok := strings.CutPrefix(rec.Header.Get("WARC-Block-Digest"), "sha1:"); r.Verify && ok {
		r.block.want, r.block.sum = want, sha1.New()
	}
	rec.Block = r.block
	return rec, nil
}

// torn reports whether err is an end of file in the middle of a record.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrTorn
	}
	return err
}

// damaged is torn for compressed data; it also separates damaged data from read errors.
func damaged(err error) error {
	var corrupt flate.CorruptInputError
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.As(err, &corrupt) {
		return fmt.Errorf("%w: %w", ErrSyntax, err)
	}
	return torn(err)
}

// begin goes to the first byte of the next record and returns its offset. Several records in one
// gzip member all have the member's offset.
func (r *Reader) begin() (int64, error) {
	if !r.started {
		r.started = true
		magic, err := r.file.Peek(2)
		if r.zipped = string(magic) == "\x1f\x8b"; !r.zipped {
			r.src = r.file
		}
		if len(magic) == 0 && err != io.EOF {
			return 0, &Error{0, err}
		}
	}
	for {
		if r.src == nil {
			if err := r.nextMember(); err != nil {
				return 0, err
			}
		}
		c, err := r.src.ReadByte()
		switch {
		case err == io.EOF && r.zipped:
			r.src = nil
			continue
		case err == io.EOF:
			return 0, err
		case err != nil:
			return 0, &Error{r.member, damaged(err)}
		case c == '\r' || c == '\n': // more empty lines than there should be
			continue
		}
		_ = r.src.UnreadByte()
		if r.zipped {
			return r.member, nil
		}
		return r.file.n, nil
	}
}

func (r *Reader) nextMember() error {
	r.member = r.file.n
	if _, err := r.file.Peek(1); err == io.EOF {
		return err // the end of the file, at the end of a member
	}
	var err error
	if r.zip == nil {
		r.zip, err = gzip.NewReader(r.file)
	} else {
		err = r.zip.Reset(r.file)
	}
	if err != nil {
		return &Error{r.member, damaged(err)}
	}
	r.zip.Multistream(false)
	r.src = bufio.NewReaderSize(r.zip, 16<<10)
	return nil
}

// header reads a record's header.
func (r *Reader) header(rec *Record) error {
	left := maxHeader
	version, err := r.line(&left)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(version, "WARC/") {
		return fmt.Errorf("%w: it begins with %.40q", ErrSyntax, version)
	}
	rec.Version = version
	for {
		line, err := r.line(&left)
		if err != nil {
			return err
		}
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' { // a folded line
			if n := len(rec.Header); n > 0 {
				rec.Header[n-1].Value = strings.TrimSpace(rec.Header[n-1].Value + " " + strings.TrimSpace(line))
				continue
			}
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("%w: header line %.80q", ErrSyntax, line)
		}
		rec.Header = append(rec.Header, Field{strings.TrimSpace(name), strings.TrimSpace(value)})
	}
	return rec.parse()
}

// line reads a line without its end, which may be a single LF.
func (r *Reader) line(left *int) (string, error) {
	var b []byte
	for {
		c, err := r.src.ReadByte()
		if err != nil {
			return "", err
		}
		if c == '\n' {
			return strings.TrimSuffix(string(b), "\r"), nil
		}
		if *left--; *left < 0 {
			return "", fmt.Errorf("%w: its header is longer than %d bytes", ErrSyntax, maxHeader)
		}
		b = append(b, c)
	}
}

// parse sets the fields that every record has.
func (rec *Record) parse() (err error) {
	h := rec.Header
	rec.Type = strings.ToLower(h.Get("WARC-Type"))
	rec.ID = trimURI(h.Get("WARC-Record-ID"))
	rec.TargetURI = trimURI(h.Get("WARC-Target-URI"))
	rec.Length, err = strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || rec.Length < 0 {
		return fmt.Errorf("%w: Content-Length %q", ErrSyntax, h.Get("Content-Length"))
	}
	if rec.Type == "" {
		return fmt.Errorf("%w: no WARC-Type", ErrSyntax)
	}
	rec.Date, err = ParseDate(h.Get("WARC-Date"))
	return err
}

// blockReader reads a record's block; at the end of the block it reads to the end of the record.
type blockReader struct {
	r    *Reader
	rec  *Record
	left int64
	sum  hash.Hash // nil if the digest is not checked
	want string
	end  error // error returned at the end; nil before
	// whole means that the record is complete, including the empty lines.
	whole bool
}

func (b *blockReader) Read(p []byte) (int, error) {
	if b.end != nil {
		return 0, b.end
	}
	if b.r.block != b {
		return 0, errors.New("warc: the block of a record that was left")
	}
	if b.left == 0 {
		b.end = b.finish()
		return 0, b.end
	}
	n, err := b.r.src.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if b.sum != nil {
		b.sum.Write(p[:n])
	}
	if err != nil && b.left > 0 {
		b.end = &Error{b.rec.Offset, damaged(err)}
		return n, b.end
	}
	return n, nil
}

// finish reads past the end of the record. Missing empty lines are tolerated.
func (b *blockReader) finish() error {
	lines := 0
	for lines < 2 {
		c, err := b.r.src.ReadByte()
		if err == io.EOF {
			break
		}
		if err != nil {
			return &Error{b.rec.Offset, damaged(err)}
		}
		if c == '\n' {
			lines++
		} else if c != '\r' {
			_ = b.r.src.UnreadByte()
			break
		}
	}
	if b.r.zipped { // the member's checksum is at its end
		switch _, err := b.r.src.ReadByte(); err {
		case nil:
			_ = b.r.src.UnreadByte()
		case io.EOF:
			b.r.src = nil
		default:
			return &Error{b.rec.Offset, damaged(err)}
		}
	}
	b.whole = lines == 2
	b.rec.Size = b.r.file.n - b.rec.Offset
	if b.sum != nil {
		if got := digestOf([sha1.Size]byte(b.sum.Sum(nil))); !strings.EqualFold(got, "sha1:"+b.want) {
			return &Error{b.rec.Offset, fmt.Errorf("%w: the block's is %s, its header has %s", ErrDigest, got, b.want)}
		}
	}
	return io.EOF
}
