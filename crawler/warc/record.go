// This file defines a record: its header, its types, its digests.

package warc

import (
	"bytes"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Types of records (WARC 1.1, section 6).
const (
	Info         = "warcinfo"
	Response     = "response"
	Resource     = "resource"
	Request      = "request"
	Metadata     = "metadata"
	Revisit      = "revisit"
	Conversion   = "conversion"
	Continuation = "continuation"
)

// Reasons why a block is shorter than the original (WARC-Truncated).
const (
	TruncatedLength      = "length"      // it was longer than the crawler wanted
	TruncatedTime        = "time"        // it took too long
	TruncatedDisconnect  = "disconnect"  // the connection broke
	TruncatedUnspecified = "unspecified" // reason unknown
)

// Profiles of revisit records.
const (
	ProfileIdentical   = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	ProfileNotModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// Field is one line of a header.
type Field struct{ Name, Value string }

// Header holds a record's named fields in order. Names are case-insensitive.
type Header []Field

// Get returns the first value of a field; empty if there is none. WARC-Concurrent-To may have several.
func (h Header) Get(name string) string {
	for _, f := range h {
		if strings.EqualFold(f.Name, name) {
			return f.Value
		}
	}
	return ""
}

// Set replaces a field's values by one, or removes it if value is empty.
func (h *Header) Set(name, value string) {
	kept := (*h)[:0]
	done := value == ""
	for _, f := range *h {
		switch {
		case !strings.EqualFold(f.Name, name):
			kept = append(kept, f)
		case !done:
			kept, done = append(kept, Field{f.Name, value}), true
		}
	}
	if !done {
		kept = append(kept, Field{name, value})
	}
	*h = kept
}

// Add adds a field, even if there are others with its name.
func (h *Header) Add(name, value string) { *h = append(*h, Field{name, value}) }

// Record is one record. If a Reader has read it, Header contains Type, TargetURI, Date and ID, too;
// a Writer takes them from these fields.
type Record struct {
	Type      string
	ID        string    // as in "urn:uuid:..."; a Writer makes one if it is empty
	Date      time.Time // time of capture; if it is zero, a Writer uses the time of writing
	TargetURI string    // empty for warcinfo
	Header    Header    // further fields
	// Block is the content of the record. A Reader's Block can be read until the next record is
	// requested.
	Block io.Reader
	// Length is the block's, in bytes. A Writer needs none: it counts.
	Length int64

	// A Reader sets Version ("WARC/1.0" or similar), Offset, which is where the record begins in
	// the file, and, once its Block was read to the end, Size: the number of bytes of the file that
	// it takes.
	Version string
	Offset  int64
	Size    int64
}

// ErrSyntax is wrapped by errors about malformed records.
var ErrSyntax = errors.New("malformed record")

// ErrTorn is wrapped by errors about a file that ends within a record.
var ErrTorn = errors.New("the file ends within a record")

// ErrDigest is wrapped by errors about a block or a payload that does not match its digest.
var ErrDigest = errors.New("digest does not match")

// Error is something wrong in a file, and where.
type Error struct {
	Offset int64 // where the record begins
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("warc: record at byte %d: %v", e.Offset, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewID returns a new record's ID: a random UUID as a URN.
func NewID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Digest returns the digest of a block or payload in the usual form: SHA-1 in base 32.
func Digest(b []byte) string { return digestOf(sha1.Sum(b)) }

func digestOf(sum [sha1.Size]byte) string { return "sha1:" + base32.StdEncoding.EncodeToString(sum[:]) }

// FormatDate writes a date as WARC does, in UTC, to the millisecond.
func FormatDate(t time.Time) string {
	t = t.UTC()
	if t.Nanosecond() < int(time.Millisecond) {
		return t.Format("2006-01-02T15:04:05Z")
	}
	return t.Format("2006-01-02T15:04:05.000Z")
}

// ParseDate reads a record's date; WARC 1.1 allows any precision from the year on.
func ParseDate(s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z", "2006-01-02", "2006-01", "2006"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("date %q: %w", s, ErrSyntax)
}

// trimURI removes the angle brackets around IDs, which some writers also put around target URIs.
func trimURI(s string) string { return strings.TrimSuffix(strings.TrimPrefix(s, "<"), ">") }

// head returns what precedes the block in a record.
func (r *Record) head(block sum) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("WARC/1.1\r\n")
	fields := append(Header{
		{"WARC-Type", r.Type},
		{"WARC-Record-ID", "<" + r.ID + ">"},
		{"WARC-Date", FormatDate(r.Date)},
		{"WARC-Target-URI", r.TargetURI},
	}, r.Header...)
	fields = append(fields, Field{"WARC-Block-Digest", block.digest}, Field{"Content-Length", fmt.Sprint(block.size)})
	for _, f := range fields {
		if f.Value == "" {
			continue
		}
		if !isToken(f.Name) || strings.ContainsAny(f.Value, "\r\n\x00") {
			return nil, fmt.Errorf("field %q with value %q: %w", f.Name, f.Value, ErrSyntax)
		}
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
	}
	b.WriteString("\r\n")
	return b.Bytes(), nil
}

// isToken reports whether s is a valid field name.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(c rune) bool {
		return c <= ' ' || c >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, c)
	})
}
