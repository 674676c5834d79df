// This file answers requests that end leases.

package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier"
)

var bodySeed = maphash.MakeSeed()

// done ends a lease, or finds that the same body has ended it before. It appends the answer,
// without its end.
func (s *Service) done(c *call, b, body []byte, e *end) ([]byte, error) {
	l, err := s.lease(e.lease)
	sum := maphash.Bytes(bodySeed, body)
	if errors.Is(err, frontier.ErrNotLeased) {
		if b, ok := s.repeated(b, e.lease, sum); ok {
			return b, nil
		}
	}
	if err != nil {
		return b, err
	}
	if err := e.complete(s, &l); err != nil {
		return b, err
	}
	verdicts, full := s.addFirst(c, e)
	if full != nil && !errors.Is(full, frontier.ErrFull) {
		return b, full
	}
	err = s.f.Done(l, e.outcome)
	if errors.Is(err, frontier.ErrNotLeased) { // by another request, just now
		if b, ok := s.repeated(b, e.lease, sum); ok {
			return b, nil
		}
	}
	if err != nil {
		return b, err
	}
	s.streams.drop(l.Token())
	from := len(b)
	b = answer(b, verdicts)
	x := endedLease{token: l.Token(), body: sum, at: time.Now()}
	if len(e.add) > 0 {
		x.answer = append([]byte(nil), b[from:]...)
	}
	s.ended.note(x)
	return b, nil
}

// repeated appends the answer of the request that ended a lease with the same body.
func (s *Service) repeated(b []byte, id string, sum uint64) ([]byte, bool) {
	l, err := frontier.RestoreLease(id, frontier.Lease{})
	if err != nil {
		return b, false
	}
	x, ok := s.ended.find(l.Token(), sum)
	if !ok {
		return b, false
	}
	if x.answer == nil {
		return append(b, `"added":0`...), true
	}
	return append(b, x.answer...), true
}

// complete fills in what an outcome needs of its lease.
func (e *end) complete(s *Service, l *frontier.Lease) error {
	o := &e.outcome
	if e.meta != nil && !l.ContactOnly() {
		kept, err := OpenEnvelope(l.Entry.Meta)
		if err != nil {
			kept = Envelope{Created: time.Now()}
		}
		kept.Meta = e.meta
		if o.Meta = kept.Append(nil); len(o.Meta) > frontier.MaxMeta {
			return badRequest("meta is too large: want at most %d bytes", frontier.MaxMeta)
		}
	}
	if o.RetryAfter > 0 && o.RetryAfter < time.Microsecond {
		o.RetryAfter = time.Microsecond
	}
	return nil
}

// addFirst adds the URLs of an end, and returns a verdict for each. The lease ends after that: if
// the process dies in between, the URL comes again and its outlinks are known. Outcome.Add,
// which does both at once, has no verdicts.
func (s *Service) addFirst(c *call, e *end) ([]verdict, error) {
	if len(e.add) == 0 {
		return nil, nil
	}
	out, _, err := s.add(c.ctx, e.add, nil, nil)
	if errors.Is(err, frontier.ErrFull) {
		for i := range e.add {
			v := verdict{id: e.add[i].id, status: frontier.EntryBad, err: e.add[i].err}
			if v.err == nil {
				v.status, v.err = frontier.EntryRefused, frontier.ErrFull
			}
			out = append(out, v)
		}
	}
	return out, err
}

// answer appends how many URLs were added, and what became of each.
func answer(b []byte, verdicts []verdict) []byte {
	added := 0
	for i := range verdicts {
		if v := verdicts[i].status; v == frontier.EntryNew || v == frontier.EntryForced {
			added++
		}
	}
	b = append(b, `"added":`...)
	b = strconv.AppendInt(b, int64(added), 10)
	if len(verdicts) == 0 {
		return b
	}
	b = append(b, `,"add":[`...)
	for i := range verdicts {
		if i > 0 {
			b = append(b, ',')
		}
		b = verdicts[i].append(b)
	}
	return append(b, ']')
}

// whole reads a body of one object.
func (l *lines) whole() ([]byte, error) {
	in := &counted{in: l.in, room: &l.c.s.room}
	b, err := io.ReadAll(http.MaxBytesReader(l.c.w, io.NopCloser(in), maxLine))
	l.held += in.held
	return b, err
}

// parsed is room for what a member or an element of a JSON value becomes.
const parsed = 256

// growFor takes room for what an end becomes once it is read: {} of an array is a whole entry then.
func (l *lines) growFor(b []byte) error {
	if !l.grow(parsed * int64(bytes.Count(b, []byte{','}))) {
		return errRoom
	}
	return nil
}

// postDone ends one lease.
func (s *Service) postDone(c *call) error {
	l, err := c.lines()
	if err != nil {
		return err
	}
	defer l.close()
	body, err := l.whole()
	if err != nil {
		return err
	}
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := l.growFor(body); err != nil {
		return err
	}
	in := scanner{b: body}
	e, err := s.end(&in, time.Now())
	if err == nil {
		err = in.end()
	}
	id := c.r.PathValue("id")
	if err == nil && e.lease != "" && e.lease != id {
		err = errors.New("lease: it is another one than in the path")
	}
	if err != nil {
		return badRequest("the body: %w", err)
	}
	e.lease = id
	b, err := s.done(c, []byte{'{'}, body, &e)
	if err != nil {
		return doneProblem(err)
	}
	c.send(http.StatusOK, "application/json", append(b, '}', '\n'))
	return nil
}

// doneProblem is an error of Done: what the frontier says no to is the client's fault.
func doneProblem(err error) error {
	if p := problemOf(err); p.kind != "internal" {
		return p
	}
	var entry *frontier.EntryError
	if errors.As(err, &entry) {
		return &problem{kind: "limit", status: http.StatusUnprocessableEntity, detail: err.Error()}
	}
	return err
}

// postEnds ends many leases, and answers line by line.
func (s *Service) postEnds(c *call) error {
	l, err := c.lines()
	if err != nil {
		return err
	}
	defer l.close()
	_ = http.NewResponseController(c.w).EnableFullDuplex() // or the client sends all before it reads
	out := make([]byte, 0, 4096)
	flush := func() error {
		if !c.began {
			c.send(http.StatusOK, "application/x-ndjson", nil)
		}
		if len(out) == 0 {
			return nil
		}
		if err := c.write(out); err != nil {
			return err
		}
		out = out[:0]
		return c.flush()
	}
	for {
		line, err := l.next()
		if errors.Is(err, io.EOF) {
			return flush()
		}
		if err != nil {
			return errors.Join(flush(), err)
		}
		held := l.held
		if err := l.growFor(line); err != nil {
			if len(out) > 0 {
				err = errors.Join(flush(), err)
			}
			return err
		}
		out = s.endLine(c, out, line)
		l.shrink(held)
		if len(out) > 16<<10 || c.r.ContentLength < 0 && l.in.Buffered() == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
}

// endLine ends the lease of a line, and appends the answer.
func (s *Service) endLine(c *call, out, line []byte) []byte {
	in := scanner{b: line}
	e, err := s.end(&in, time.Now())
	if err == nil {
		err = in.end()
	}
	switch {
	case err != nil:
		err = badRequest("%w", err)
	case e.lease == "":
		err = badRequest("lease is missing")
	}
	out = appendString(append(out, '{'), "lease", e.lease)
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	at := len(out)
	if err == nil {
		if out, err = s.done(c, out, line, &e); err == nil {
			return append(out, '}', '\n')
		}
	}
	p, _ := json.Marshal(problemOf(doneProblem(err)))
	out = append(append(out[:at], `"error":`...), p...)
	return append(out, '}', '\n')
}
