// This file writes what a crawler fetched: a request, its answer or a note that nothing changed,
// and metadata.

package warc

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha1"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/internal/media"
)

// cleanLine keeps a value on its line.
func cleanLine(s string) string {
	return strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ").Replace(s)
}

// WriteExchange writes the records of one exchange, which refer to each other: response or revisit,
// request, and metadata. An answer with status 304 becomes a revisit (server-not-modified) if
// Captured reports its URL, and otherwise a response. An answer whose payload was written before
// and is remembered becomes a revisit, too (identical-payload-digest); empty payloads are always
// written. An answer over another protocol than HTTP becomes a resource, with its status in the
// metadata.
func (w *Writer) WriteExchange(e Exchange) error {
	if e.Date.IsZero() {
		e.Date = w.opts.Now()
	}
	if e.Payload == nil {
		e.Payload = bytes.NewReader(e.Body)
	}
	sum, err := summed(e.Payload)
	if err != nil {
		return fmt.Errorf("warc: write: %w", err)
	}
	if !e.isHTTP() {
		return w.Write(e.others(sum)...)
	}
	main := &Record{Type: Response, ID: NewID(), Date: e.Date, TargetURI: e.URL, Header: Header{
		{"Content-Type", "application/http; msgtype=response"}, {"WARC-IP-Address", e.IP}, {"WARC-Protocol", e.Protocol}, {"WARC-Truncated", e.Truncated},
	}}
	var capture payload
	if e.Status == http.StatusNotModified {
		w.notModified(main, &e)
	} else {
		capture = w.response(main, &e, sum)
	}
	records := []*Record{main}
	if e.Request != nil || e.RequestHeader != nil {
		records = append(records, &Record{Type: Request, Date: e.Date, TargetURI: e.URL, Block: bytes.NewReader(e.requestBlock()), Header: Header{
			{"WARC-Concurrent-To", "<" + main.ID + ">"}, {"Content-Type", "application/http; msgtype=request"}, {"WARC-IP-Address", e.IP}, {"WARC-Protocol", e.Protocol},
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
	if capture.digest != "" && capture.id == main.ID && sum.size > 0 && e.Truncated == "" {
		w.seen.add(capture.digest, capture)
	}
	if capture.digest != "" && e.Status/100 == 2 {
		w.captures.set(e.URL, capture)
	}
	return nil
}

// sum is what must be known about a payload before it is written.
type sum struct {
	digest string
	size   int64
	head   []byte // its beginning
}

// summed reads a payload, and goes back to its start.
func summed(r io.ReadSeeker) (s sum, err error) {
	if _, err := r.Seek(0, io.SeekStart); err != nil {
		return s, err
	}
	s.head = make([]byte, 512)
	n, err := io.ReadFull(r, s.head)
	if s.head = s.head[:n]; err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return s, err
	}
	h := sha1.New()
	h.Write(s.head)
	rest, err := io.Copy(h, r)
	if err != nil {
		return s, err
	}
	s.digest, s.size = digestOf([sha1.Size]byte(h.Sum(nil))), int64(n)+rest
	_, err = r.Seek(0, io.SeekStart)
	return s, err
}

// notModified fills in the record of an answer with status 304.
func (w *Writer) notModified(main *Record, e *Exchange) {
	main.Block = bytes.NewReader(e.responseHead(-1))
	if of, ok := w.captures.written(e.URL); ok {
		main.Type = Revisit
		main.Header.Add("WARC-Profile", ProfileNotModified)
		of.refer(main)
	}
}

// refer makes a revisit refer to the record that holds its payload.
func (p *payload) refer(main *Record) {
	main.Header.Set("WARC-Payload-Digest", p.digest)
	main.Header.Add("WARC-Refers-To", "<"+p.id+">")
	main.Header.Add("WARC-Refers-To-Target-URI", p.url)
	main.Header.Add("WARC-Refers-To-Date", FormatDate(p.date))
}

// response fills in a response, or a revisit if its payload is known. It returns where
// the payload is.
func (w *Writer) response(main *Record, e *Exchange, s sum) payload {
	head := e.responseHead(s.size)
	if e.Truncated == "" { // the empty payload is never remembered
		if first, ok := w.seen.written(s.digest); ok {
			main.Type = Revisit
			main.Header.Add("WARC-Profile", ProfileIdentical)
			first.refer(main)
			main.Block = bytes.NewReader(head)
			return first
		}
	}
	main.Header.Add("WARC-Payload-Digest", s.digest)
	if t := identify(e.Header, s.head); t != "" {
		main.Header.Add("WARC-Identified-Payload-Type", t)
	}
	main.Block = &joined{head: bytes.NewReader(head), rest: e.Payload}
	return payload{digest: s.digest, id: main.ID, url: e.URL, date: e.Date}
}

// joined reads a head and then a payload.
type joined struct {
	head *bytes.Reader
	rest io.ReadSeeker
}

func (j *joined) Read(p []byte) (int, error) {
	if j.head.Len() > 0 {
		return j.head.Read(p)
	}
	return j.rest.Read(p)
}

// Seek always goes back to the start; it ignores its arguments.
func (j *joined) Seek(int64, int) (int64, error) {
	_, _ = j.head.Seek(0, io.SeekStart)
	return j.rest.Seek(0, io.SeekStart)
}

// identify returns the type of a payload if its bytes contradict the header, or the header has
// none.
func identify(h http.Header, body []byte) string {
	if len(body) == 0 {
		return ""
	}
	found, told := media.Parse(http.DetectContentType(body)).Essence, media.Of(h).Essence
	if found == told || found == "application/octet-stream" || found == "text/plain" && told != "" {
		return ""
	}
	return found
}

// payload is where a payload was written first.
type payload struct {
	digest string
	id     string // ID of its record; empty if it must be looked up through an index
	url    string
	date   time.Time
	file   string // path of the record's file; empty if the id is known
	offset int64
}

// find reads the record of a payload that is known from an index, for its ID and its exact date;
// the index has only seconds.
func (p *payload) find() bool {
	if p.file == "" {
		return true
	}
	f, err := os.Open(p.file)
	if err != nil {
		return false
	}
	defer f.Close()
	if _, err := f.Seek(p.offset, io.SeekStart); err != nil {
		return false
	}
	rec, err := NewReader(f).Next()
	if err != nil || rec.TargetURI != p.url || rec.Header.Get("WARC-Payload-Digest") != p.digest {
		return false
	}
	p.id, p.date, p.file = rec.ID, rec.Date, ""
	return true
}

// written returns where the payload with a key was written, if that is remembered, and its record still there.
func (m *payloads) written(key string) (payload, bool) {
	p, ok := m.get(key)
	if !ok || p.file == "" {
		return p, ok
	}
	if ok = p.find(); ok {
		m.set(key, p)
	} else {
		m.remove(key)
	}
	return p, ok
}

// Captured reports whether the Writer remembers the last capture of a URL, so that an answer with
// status 304 can be written as a revisit of it. A crawler should request other pages without
// conditions.
func (w *Writer) Captured(url string) bool {
	_, ok := w.captures.written(url)
	return ok
}

// payloads remembers the last ones, by digest or URL.
type payloads struct {
	max int

	mu    sync.Mutex
	known map[string]payload // guarded by mu
	order []string           // guarded by mu; a ring
	next  int                // guarded by mu
}

func (p *payloads) get(key string) (payload, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	found := p.known[key]
	return found, found.digest != ""
}

// remove forgets a payload; its place in the ring is reused in turn.
func (p *payloads) remove(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.known[key]; ok {
		p.known[key] = payload{}
	}
}

// add remembers a payload unless its key is known.
func (p *payloads) add(key string, x payload) { p.put(key, x, false) }

// set remembers a payload, replacing one with the same key.
func (p *payloads) set(key string, x payload) { p.put(key, x, true) }

func (p *payloads) put(key string, x payload, replace bool) {
	if p.max == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[string]payload{}
	}
	if old, ok := p.known[key]; ok {
		if replace || old.digest == "" {
			p.known[key] = x
		}
		return
	}
	p.known[key] = x
	if len(p.order) < p.max {
		p.order = append(p.order, key)
		return
	}
	delete(p.known, p.order[p.next])
	p.order[p.next] = key
	p.next = (p.next + 1) % p.max
}

// indexLine returns the index line of a record, given its block or the beginning of it; nil for
// records that are not indexed.
func indexLine(r *Record, block []byte) *IndexLine {
	if r.Type != Response && r.Type != Revisit && r.Type != Resource || r.TargetURI == "" {
		return nil
	}
	l := &IndexLine{Key: SURT(r.TargetURI), Date: r.Date, URL: r.TargetURI, Digest: r.Header.Get("WARC-Payload-Digest")}
	if r.Type == Resource {
		l.MIME = mediaType(media.Parse(r.Header.Get("Content-Type")))
		l.Digest = cmp.Or(l.Digest, r.Header.Get("WARC-Block-Digest"))
		return l
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(block)), &http.Request{Method: http.MethodHead})
	if err == nil {
		l.Status = fmt.Sprint(resp.StatusCode)
		l.MIME = mediaType(media.Of(resp.Header))
	}
	if r.Type == Revisit {
		l.MIME = "warc/revisit"
	}
	return l
}

func mediaType(t media.Type) string { return cmp.Or(t.Essence, "unk") }
