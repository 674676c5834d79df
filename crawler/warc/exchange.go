// This file writes what a crawler fetched: a request, its answer or that there was
// nothing new, and metadata.

package warc

import (
	"bufio"
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"
)

// cleanLine keeps a value on its line.
func cleanLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ").Replace(s)
}

// WriteExchange writes the records of one exchange: response or revisit, request, and
// metadata, which name each other. An answer with status 304 is a revisit
// (server-not-modified), and so is one whose payload was written already and is
// remembered (identical-payload-digest); empty payloads are always written. What was
// fetched over another protocol than HTTP is a resource, with its status in metadata.
func (w *Writer) WriteExchange(e Exchange) error {
	if e.Date.IsZero() {
		e.Date = w.opts.Now()
	}
	if !e.isHTTP() {
		return w.Write(e.others()...)
	}
	main := &Record{Type: Response, ID: NewID(), Date: e.Date, TargetURI: e.URL, Header: Header{
		{"Content-Type", "application/http; msgtype=response"}, {"WARC-IP-Address", e.IP}, {"WARC-Truncated", e.Truncated},
	}}
	var remember payload
	if e.Status == http.StatusNotModified {
		main.Type = Revisit
		main.Header.Add("WARC-Profile", ProfileNotModified)
		main.Block = bytes.NewReader(e.responseHead(false))
	} else {
		remember = w.response(main, &e)
	}
	records := []*Record{main}
	if e.RequestHeader != nil {
		records = append(records, &Record{Type: Request, Date: e.Date, TargetURI: e.URL, Block: bytes.NewReader(e.requestBlock()), Header: Header{
			{"WARC-Concurrent-To", "<" + main.ID + ">"}, {"Content-Type", "application/http; msgtype=request"}, {"WARC-IP-Address", e.IP},
		}})
	}
	if len(e.Metadata) > 0 {
		block := bytes.NewReader(fieldsBlock(e.Metadata))
		records = append(records, &Record{Type: Metadata, Date: e.Date, TargetURI: e.URL, Block: block, Header: Header{
			{"WARC-Concurrent-To", "<" + main.ID + ">"}, {"WARC-Refers-To", "<" + main.ID + ">"}, {"Content-Type", "application/warc-fields"},
		}})
	}
	if err := w.Write(records...); err != nil {
		return err
	}
	if remember.digest != "" {
		w.seen.add(remember)
	}
	return nil
}

// response fills in a response, or a revisit if its payload is known. It returns the
// payload if it is to be remembered.
func (w *Writer) response(main *Record, e *Exchange) payload {
	head := e.responseHead(true)
	digest := Digest(e.Body)
	main.Header.Add("WARC-Payload-Digest", digest)
	if e.Truncated == "" { // the empty payload is never remembered
		if first, ok := w.seen.get(digest); ok {
			main.Type = Revisit
			main.Header.Add("WARC-Profile", ProfileIdentical)
			if first.id != "" {
				main.Header.Add("WARC-Refers-To", "<"+first.id+">")
			}
			main.Header.Add("WARC-Refers-To-Target-URI", first.url)
			main.Header.Add("WARC-Refers-To-Date", FormatDate(first.date))
			main.Block = bytes.NewReader(head)
			return payload{}
		}
	}
	if t := identify(e.Header, e.Body); t != "" {
		main.Header.Add("WARC-Identified-Payload-Type", t)
	}
	main.Block = bytes.NewReader(append(head, e.Body...))
	if e.Truncated != "" || len(e.Body) == 0 {
		return payload{}
	}
	return payload{digest: digest, id: main.ID, url: e.URL, date: e.Date}
}

// identify tells what a payload is if its bytes say otherwise than the header, or the
// header says nothing.
func identify(h http.Header, body []byte) string {
	if len(body) == 0 {
		return ""
	}
	found, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	told, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	if found == told || found == "application/octet-stream" || found == "text/plain" && told != "" {
		return ""
	}
	return found
}

// payload is where a payload was written first.
type payload struct {
	digest string
	id     string // of its record; empty if it is known from an index
	url    string
	date   time.Time
}

// payloads remembers the last ones.
type payloads struct {
	max int

	mu    sync.Mutex
	known map[string]payload // guarded by mu
	order []string           // guarded by mu; a ring
	next  int                // guarded by mu
}

func (p *payloads) get(digest string) (payload, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found, ok := p.known[digest]
	return found, ok
}

func (p *payloads) add(x payload) {
	if p.max == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]payload{}
	}
	if _, ok := p.known[x.digest]; ok {
		return
	}
	p.known[x.digest] = x
	if len(p.order) < p.max {
		p.order = append(p.order, x.digest)
		return
	}
	delete(p.known, p.order[p.next])
	p.order[p.next] = x.digest
	p.next = (p.next + 1) % p.max
}

// indexLine is what an index says of a record, given its block or the beginning of it;
// nil of records that are not in indexes.
func indexLine(r *Record, block []byte) *IndexLine {
	if r.Type != Response && r.Type != Revisit && r.Type != Resource || r.TargetURI == "" {
		return nil
	}
	l := &IndexLine{Key: SURT(r.TargetURI), Date: r.Date, URL: r.TargetURI, Digest: r.Header.Get("WARC-Payload-Digest")}
	if r.Type == Resource {
		l.MIME = mediaType(r.Header.Get("Content-Type"))
		if l.Digest == "" {
			l.Digest = r.Header.Get("WARC-Block-Digest")
		}
		return l
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(block)), &http.Request{Method: http.MethodHead})
	if err == nil {
		l.Status = fmt.Sprint(resp.StatusCode)
		l.MIME = mediaType(resp.Header.Get("Content-Type"))
	}
	if r.Type == Revisit {
		l.MIME = "warc/revisit"
	}
	return l
}

func mediaType(header string) string {
	t, _, _ := mime.ParseMediaType(header)
	if t == "" {
		return "unk"
	}
	return t
}
