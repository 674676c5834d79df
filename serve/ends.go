// This file answers requests that end leases.

package serve

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/jsonl"
)

var bodySeed = maphash.MakeSeed()

// ending is a lease's end while a request works on it.
type ending struct {
	end
	token  uint64
	claims bool   // it claims the lease: no other request may end it
	body   uint64 // hash of the body
	answer string // members of the JSON object
	err    error
}

// newEnding returns the ending that a body asks for.
func newEnding(e end, body []byte) ending {
	x := ending{end: e, body: maphash.Bytes(bodySeed, body)}
	l, err := frontier.RestoreLease(e.lease, frontier.Lease{})
	if err != nil {
		x.err = frontier.ErrNotLeased
	}
	x.token = l.Token()
	return x
}

// endAll ends leases. An end with the same body as an earlier one gets the earlier answer. The work
// continues if the client disconnects, so that a retry finds the answer.
func (s *Service) endAll(ctx context.Context, all []ending) {
	first := 0 // the first claimed one that has not ended
	defer func() {
		for i := range all { // a policy has panicked
			s.settle(&all[i], nil)
		}
	}()
	for i := range all {
		x := &all[i]
		for x.err == nil {
			wait := s.ended.claim(x.token)
			if wait == nil {
				x.claims = true
				break
			}
			s.endClaimed(all[first:i]) // holds no claims while it waits
			first = i
			select {
			case <-wait:
			case <-ctx.Done():
				x.err = ctx.Err()
			}
		}
	}
	s.endClaimed(all[first:])
}

// settle releases a claim. It remembers how the lease ended, unless was is nil.
func (s *Service) settle(x *ending, was *endedLease) {
	if x.claims {
		x.claims = false
		s.ended.settle(x.token, was)
	}
}

// endClaimed ends the claimed leases that have no error.
func (s *Service) endClaimed(all []ending) {
	defer s.Adding()()
	ends, of := make([]frontier.End, 0, len(all)), make([]*ending, 0, len(all))
	for i := range all {
		x := &all[i]
		if x.err != nil {
			continue
		}
		if old, ok := s.ended.find(x.token, x.body); ok {
			if x.answer = old.answer; x.answer == "" {
				x.answer = nothingAdded
			}
			s.settle(x, nil)
			continue
		}
		l, err := s.lease(x.lease)
		if err == nil {
			err = s.complete(&x.end, &l)
		}
		if err != nil {
			if x.err = err; errors.Is(err, frontier.ErrNotLeased) {
				x.err = cmp.Or(s.lateID(x.lease, x.outcome), err)
			}
			s.settle(x, nil)
			continue
		}
		ends, of = append(ends, frontier.End{Lease: l, Outcome: x.outcome}), append(of, x)
	}
	if len(ends) == 0 {
		return
	}
	for i, done := range s.DoneAll(context.Background(), ends) {
		x := of[i]
		if done.Verdicts == nil {
			x.err = done.Err
			s.settle(x, nil)
			continue
		}
		s.streams.drop(x.token)
		was := endedLease{token: x.token, body: x.body, at: time.Now()}
		if x.answer = nothingAdded; len(x.add) > 0 {
			faults := append(done.Refused, frontier.EntryErrors(done.Err)...)
			slices.SortFunc(faults, func(a, b *frontier.EntryError) int { return a.Index - b.Index })
			was.answer = string(answer(nil, verdictsOf(x.add, done.Verdicts, faults, done.Err, nil)))
			x.answer = was.answer
		}
		s.settle(x, &was)
	}
}

const nothingAdded = `"added":0`

// complete derives the rest of an outcome from its lease.
func (s *Service) complete(e *end, l *frontier.Lease) error {
	o := &e.outcome
	if e.meta != nil && !l.ContactOnly() {
		kept, err := OpenEnvelope(l.Entry.Meta)
		if err != nil {
			kept = Envelope{Created: s.f.Now()}
		}
		kept.Meta = e.meta
		if o.Meta = kept.Append(nil); len(o.Meta) > frontier.MaxMeta {
			return badRequest("meta is too large: want at most %d bytes", frontier.MaxMeta)
		}
	}
	s.inheritLinks(l, e.add)
	if err := s.resolve(e.add); err != nil {
		return err
	}
	for i := range e.add {
		if x := &e.add[i]; x.err == nil {
			x.entry.AsIs = true
			o.Add = append(o.Add, x.entry)
		}
	}
	return nil
}

// answer appends the number of URLs added, and a verdict for each.
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

// whole reads a body that consists of one object.
func (l *lines) whole() ([]byte, error) {
	in := &counted{in: l.in, room: &l.c.s.room}
	b, err := io.ReadAll(http.MaxBytesReader(l.c.w, io.NopCloser(in), maxLine))
	l.held += in.held
	return b, err
}

// parsed is the memory to reserve per member or element of a JSON value.
const parsed = 256

// growFor reserves memory for a parsed end. Each {} of an array becomes a whole Entry.
func (l *lines) growFor(b []byte) error {
	return l.grow(int64(len(b)) + parsed*int64(bytes.Count(b, []byte{','})))
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
	if len(bytes.TrimSpace(body)) == 0 {
		body = []byte("{}")
	}
	if err := l.growFor(body); err != nil {
		return err
	}
	e, err := l.parseEnd(body)
	id := c.r.PathValue("id")
	if err == nil && e.lease != "" && e.lease != id {
		err = errors.New("lease: it is another one than in the path")
	}
	if err != nil {
		return badRequest("the body: %w", err)
	}
	e.lease = id
	all := []ending{newEnding(e, body)}
	s.endAll(c.ctx, all)
	if all[0].err != nil {
		return all[0].err
	}
	c.send(http.StatusOK, "application/json", []byte("{"+all[0].answer+"}\n"))
	return nil
}

// endings is a request that ends many leases.
type endings struct {
	c     *call
	lines *lines
	held  int64 // bytes that lines held before it took any in
	size  int
	all   []ending
	out   []byte
}

// postEnds ends many leases, and answers one line for each.
func (s *Service) postEnds(c *call) error {
	l, err := c.lines()
	if err != nil {
		return err
	}
	defer l.close()
	c.talk()
	x := &endings{c: c, lines: l, held: l.held}
	for {
		line, err := l.next()
		if err == nil {
			err = x.take(line)
		}
		full := len(x.all) >= endsAtOnce || x.size >= batchSize
		ended := errors.Is(err, io.EOF)
		if full || err != nil && (ended || len(x.all) > 0) || err == nil && l.in.Buffered() == 0 {
			if failed := x.commit(); failed != nil && (err == nil || ended) {
				return failed
			}
		}
		if ended {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// endsAtOnce is how many leases are ended in one batch.
const endsAtOnce = 500

// take parses a line and adds it to the batch.
func (x *endings) take(line []byte) error {
	if err := x.lines.growFor(line); err != nil {
		if len(x.all) == 0 {
			return err
		}
		if err := x.commit(); err != nil { // to make room
			return err
		}
		if err := x.lines.growFor(line); err != nil {
			return err
		}
	}
	e, err := x.lines.parseEnd(line)
	switch {
	case err != nil:
		err = badRequest("%w", err)
	case e.lease == "":
		err = badRequest("lease is missing")
	}
	end := ending{end: e, err: err}
	if err == nil {
		end = newEnding(e, line)
	}
	x.size += len(line)
	x.all = append(x.all, end)
	return nil
}

// commit ends the batch and answers.
func (x *endings) commit() error {
	x.c.s.endAll(x.c.ctx, x.all)
	x.out = x.out[:0]
	for i := range x.all {
		x.out = append(x.all[i].append(x.out), '\n')
	}
	clear(x.all)
	x.all, x.size = x.all[:0], 0
	x.lines.release(x.held)
	return x.c.stream(x.out)
}

// append appends the answer for one line.
func (x *ending) append(b []byte) []byte {
	w := jsonl.Writer(b)
	w.Open()
	w.Text("lease", x.lease)
	if x.err == nil {
		if x.lease != "" {
			w = append(w, ',')
		}
		return append(append(w, x.answer...), '}')
	}
	p, _ := json.Marshal(problemOf(x.err))
	w.Name("error")
	return append(append(w, p...), '}')
}
