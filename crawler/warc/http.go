// This file makes records of HTTP exchanges.

package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Exchange is a request and its answer, as a crawler has them.
type Exchange struct {
	URL  string
	Date time.Time // time of the request; zero means now
	IP   string    // of the server; empty if unknown
	// Request is the head of the request as sent, including the empty line at its end. If it is
	// nil, it is built from Method (empty means GET) and RequestHeader. If that is nil, too, no
	// request record is written.
	Request       []byte
	Method        string
	RequestHeader http.Header
	// Protocol is set if the messages were not sent in the form of the records: "h2" for HTTP/2
	// (WARC-Protocol).
	Protocol string

	Status int
	// Header has a Content-Encoding only if Body is still encoded so.
	Header http.Header
	// Body is the payload without transfer encodings. Header fields about these and about the
	// length are left out of the record or corrected, so that the record is consistent.
	Body []byte
	// Payload is read instead of Body if it is set. It is read from its start, more than once. Use
	// it for payloads that are not in memory.
	Payload io.ReadSeeker
	// Truncated is one of the reasons if Body is not all.
	Truncated string

	// Metadata holds further information, such as where the URL was found ("via") and over which
	// links ("hopsFromSeed"). If it is empty, no metadata record is written.
	Metadata Header
}

// requestBlock returns the request as it was sent, or would be.
func (e *Exchange) requestBlock() []byte {
	if e.Request != nil {
		return e.Request
	}
	var b bytes.Buffer
	target, host := e.URL, ""
	if u, err := url.Parse(e.URL); err == nil {
		target, host = u.RequestURI(), u.Host
	}
	method := cmp.Or(e.Method, http.MethodGet)
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, target)
	if host != "" && e.RequestHeader.Get("Host") == "" {
		fmt.Fprintf(&b, "Host: %s\r\n", host)
	}
	writeHeader(&b, e.RequestHeader, nil)
	b.WriteString("\r\n")
	return b.Bytes()
}

// responseHead returns the status line and the header of the answer, with the payload's length. If
// length is negative there is no payload, and the server's fields are kept.
func (e *Exchange) responseHead(length int64) []byte {
	withBody := length >= 0
	var b bytes.Buffer
	text := http.StatusText(e.Status)
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", e.Status, text)
	leave := []string{"Transfer-Encoding", "Trailer", "Connection"}
	if withBody {
		leave = append(leave, "Content-Length")
	}
	writeHeader(&b, e.Header, leave)
	if withBody {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", length)
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

// writeHeader writes the fields of a header, sorted by name. Bytes that would end a line are
// written as spaces.
func writeHeader(b *bytes.Buffer, h http.Header, leave []string) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if slices.Contains(leave, http.CanonicalHeaderKey(name)) || !isToken(name) {
			continue
		}
		for _, value := range h[name] {
			fmt.Fprintf(b, "%s: %s\r\n", name, cleanLine(value))
		}
	}
}

// chunkSize matches the beginning of a chunked body.
var chunkSize = regexp.MustCompile(`^[0-9A-Fa-f]+[ \t]*(;|\r\n)`)

// HTTP parses the block of a response or revisit record as an HTTP answer. Its Body is the payload,
// and can be read as long as the record's Block.
func (r *Record) HTTP() (*http.Response, error) {
	if !strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "application/http") {
		return nil, fmt.Errorf("warc: record at byte %d holds no HTTP message but %q", r.Offset, r.Header.Get("Content-Type"))
	}
	// The body is what the record contains, whatever length the header declares.
	br := bufio.NewReader(r.Block)
	resp, err := http.ReadResponse(br, &http.Request{Method: http.MethodHead})
	if err != nil {
		return nil, &Error{r.Offset, fmt.Errorf("%w: %w", ErrSyntax, err)}
	}
	chunked := slices.Contains(resp.TransferEncoding, "chunked")
	resp.Request = nil
	resp.Body = io.NopCloser(br)
	if head, _ := br.Peek(32); chunked && chunkSize.Match(head) { // some writers decode it and say nothing
		resp.Body = io.NopCloser(httputil.NewChunkedReader(br))
	}
	return resp, nil
}
