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
)

var bodySeed = maphash.MakeSeed()

// ending is the end of a lease on its way.
type ending struct {
	end
	token  uint64
	claims bool   // its lease: no other request ends it meanwhile
	body   uint64 // its hash
	answer string // members of an object
	err    error
}

// newEnding is the end of a lease by a body.
func newEnding(e end, body []byte) ending {
	x := ending{end: e, body: maphash.Bytes(bodySeed, body)}
	l, err := frontier.RestoreLease(e.lease, frontier.Lease{})
	if err != nil {
		x.err = frontier.ErrNotLeased
	}
	x.token = l.Token()
	return x
}

// endAll ends leases, or finds that the same bodies have ended them before. A request whose client
// has gone goes on, so that the client finds its answer when it asks again.
func (s *Service) endAll(ctx context.Context, all []ending) {
	first := 0 // of those that are claimed, and have not ended
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
			s.endClaimed(all[first:i]) // a request that waits holds no claims
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

// settle gives up a claim, and remembers how the lease ended, unless was is nil.
func (s *Service) settle(x *ending, was *endedLease) {
	if x.claims {
		x.claims = false
		s.ended.settle(x.token, was)
	}
}

// endClaimed ends the leases that were claimed: those without an error.
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

// complete fills in what an outcome needs of its lease.
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
	if o.RetryAfter > 0 && o.RetryAfter < time.Microsecond {
		o.RetryAfter = time.Microsecond
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
	if len(body) == 0 {
		body = []byte("{}")
	}
	if err := l.growFor(body); err != nil {
		return err
	}
	in := scanner{b: body}
	e, err := s.end(&in, s.f.Now())
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
	all := []ending{newEnding(e, body)}
	s.endAll(c.ctx, all)
	if all[0].err != nil {
		return all[0].err
	}
	c.send(http.StatusOK, "application/json", []byte("{"+all[0].answer+"}\n"))
	return nil
}

// endings are the lines of a request that ends leases.
type endings struct {
	c     *call
	lines *lines
	held  int64 // by lines, without those that were taken in
	size  int
	all   []ending
	out   []byte
}

// postEnds ends many leases, and answers line by line.
func (s *Service) postEnds(c *call) error {
	l, err := c.lines()
	if err != nil {
		return err
	}
	defer l.close()
	_ = http.NewResponseController(c.w).EnableFullDuplex() // or the client sends all before it reads
	x := &endings{c: c, lines: l, held: l.held}
	for {
		line, err := l.next()
		if err == nil {
			err = x.take(line)
		}
		full := len(x.all) >= endsAtOnce || x.size >= batchSize
		ended := errors.Is(err, io.EOF)
		if full || err != nil && (ended || len(x.all) > 0) || err == nil && l.in.Buffered() == 0 {
			if failed := x.commit(); failed != nil {
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

// endsAtOnce is how many leases end together.
const endsAtOnce = 500

// take takes in a line.
func (x *endings) take(line []byte) error {
	if err := x.lines.growFor(line); err != nil {
		if len(x.all) == 0 {
			return err
		}
		if err := x.commit(); err != nil { // that makes room
			return err
		}
		if err := x.lines.growFor(line); err != nil {
			return err
		}
	}
	in := scanner{b: line}
	e, err := x.c.s.end(&in, x.c.s.f.Now())
	if err == nil {
		err = in.end()
	}
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

// commit ends what was taken in, and answers.
func (x *endings) commit() error {
	x.c.s.endAll(x.c.ctx, x.all)
	x.out = x.out[:0]
	for i := range x.all {
		x.out = append(x.all[i].append(x.out), '\n')
	}
	clear(x.all)
	x.all, x.size = x.all[:0], 0
	x.lines.release(x.held)
	if !x.c.began {
		x.c.send(http.StatusOK, "application/x-ndjson", nil)
	}
	if len(x.out) == 0 {
		return nil
	}
	if err := x.c.write(x.out); err != nil {
		return err
	}
	return x.c.flush()
}

// append appends the answer to a line.
func (x *ending) append(b []byte) []byte {
	b = appendString(append(b, '{'), "lease", x.lease)
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	if x.err == nil {
		return append(append(b, x.answer...), '}')
	}
	p, _ := json.Marshal(problemOf(x.err))
	b = append(append(b, `"error":`...), p...)
	return append(b, '}')
}
