// This file makes records of what was said over HTTP.

package warc

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Exchange is a request and its answer, as a crawler knows them.
type Exchange struct {
	URL  string
	Date time.Time // when it was asked for; zero means now
	IP   string    // of the server; empty if unknown
	// Request is the head of the request as it was sent, to the empty line at its end.
	// Without it, it is made of Method (empty means GET) and RequestHeader. If that is nil,
	// too, no request record is written.
	Request       []byte
	Method        string
	RequestHeader http.Header
	// Protocol is told if the messages were not sent as they stand in the records: "h2"
	// for HTTP/2 (WARC-Protocol).
	Protocol string

	Status int
	Header http.Header
	// Body is the payload without transfer and content encodings. What Header says of
	// these and of the length is left out of the record or corrected, so that the
	// record can be read as it stands.
	Body []byte
	// Payload is read instead of Body if it is set, from its start, and more than once:
	// for a payload that is not in memory.
	Payload io.ReadSeeker
	// Truncated is one of the reasons if Body is not all.
	Truncated string

	// Metadata are further things to be noted, such as where the URL was found ("via")
	// and over how many links ("hopsFromSeed"). Without any no record is written.
	Metadata Header
}

// requestBlock is the request as it was sent, or would be.
func (e *Exchange) requestBlock() []byte {
	if e.Request != nil {
		return e.Request
	}
	var b bytes.Buffer
	target, host := e.URL, ""
	if u, err := url.Parse(e.URL); err == nil {
		target, host = u.RequestURI(), u.Host
	}
	method := e.Method
	if method == "" {
		method = http.MethodGet
	}
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", method, target)
	if host != "" && e.RequestHeader.Get("Host") == "" {
		fmt.Fprintf(&b, "Host: %s\r\n", host)
	}
	writeHeader(&b, e.RequestHeader, nil)
	b.WriteString("\r\n")
	return b.Bytes()
}

// responseHead is the status line and the header of the answer, with its payload's
// length. If that is less than zero there is none, and what the server told is kept.
func (e *Exchange) responseHead(length int64) []byte {
	withBody := length >= 0
	var b bytes.Buffer
	text := http.StatusText(e.Status)
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", e.Status, text)
	leave := []string{"Transfer-Encoding", "Content-Encoding", "Trailer", "Connection"}
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

// writeHeader writes a header's fields in order of their names. Bytes that would end a
// line are written as blanks.
func writeHeader(b *bytes.Buffer, h http.Header, leave []string) {
	names := make([]string, 0, len(h))
	for name := range h {
		if !slices.Contains(leave, http.CanonicalHeaderKey(name)) && isToken(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	clean := strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ")
	for _, name := range names {
		for _, value := range h[name] {
			fmt.Fprintf(b, "%s: %s\r\n", name, clean.Replace(value))
		}
	}
}

// chunkSize is what a chunked body begins with.
var chunkSize = regexp.MustCompile(`^[0-9A-Fa-f]+[ \t]*(;|\r\n)`)

// HTTP reads the block of a response or revisit record as an HTTP answer. Its Body is
// the payload, and can be read as long as the record's Block.
func (r *Record) HTTP() (*http.Response, error) {
	if !strings.HasPrefix(strings.ToLower(r.Header.Get("Content-Type")), "application/http") {
		return nil, fmt.Errorf("warc: record at byte %d holds no HTTP message but %q", r.Offset, r.Header.Get("Content-Type"))
	}
	// The body is what the record has, whatever the header says of its length.
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
