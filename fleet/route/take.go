// This file takes leases of the parts, and gives back those that no client gets.

package route

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/jsonl"
)

const (
	// slice is how long a part is asked to wait at once: for so long, a request may be under way whose
	// leases are not needed any more.
	slice     = 2 * time.Second
	slow      = 5 * time.Second // how long a request waits for one part before it goes on to the next
	maxWait   = time.Minute
	maxLeases = 10_000
	soon      = 0.1 // seconds until a client asks again that came while links were under way
)

// takeRequest is the body of POST /v1/leases.
type takeRequest struct {
	Hosts   int      `json:"hosts"`
	PerHost int      `json:"per_host"`
	Max     int      `json:"max"`
	Crawls  []string `json:"crawls,omitempty"`
	Host    *string  `json:"host,omitempty"`
	LeaseS  float64  `json:"lease_s"`
	WaitS   float64  `json:"wait_s"`
}

// taken is a part's answer.
type taken struct {
	Leases    []json.RawMessage `json:"leases"`
	NextS     *float64          `json:"next_s,omitempty"`
	Exhausted bool              `json:"exhausted,omitempty"`
	Held      int64             `json:"held,omitempty"`

	part  *part
	after time.Duration // how long after the client's request the part was asked
	err   error
}

// taking is a request for leases.
type taking struct {
	c          *call
	q          takeRequest
	hosts, max int
	got        []taken         // with leases
	last       map[*part]taken // each part's latest answer
}

// postLeases hands out leases.
func (c *call) postLeases() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	t := &taking{c: c, last: map[*part]taken{}}
	if err := jsonl.Decode(bytes.NewReader(body), &t.q); err != nil {
		return badRequest("the body: %v", err)
	}
	q := &t.q
	if q.Crawls != nil && len(q.Crawls) == 0 {
		return badRequest("crawls is empty: want at least one name, or no crawls at all for every one")
	}
	parts := slices.Clone(c.r.parts)
	if q.Host != nil && *q.Host != "" {
		parts = []*part{c.r.of("", *q.Host)}
	}
	if t.max = min(q.Max, maxLeases); t.max == 0 {
		t.max = min(maxLeases, max(1, min(q.Hosts, maxLeases))*max(1, min(q.PerHost, maxLeases)))
	}
	if t.hosts = q.Hosts; t.hosts == 0 {
		t.hosts = t.max
	}
	if q.WaitS > 0 {
		if err := c.waits(); err != nil {
			return err
		}
		defer c.r.waiting.Add(-1)
	}
	wait := q.WaitS
	if q.WaitS >= 0 && q.WaitS <= 30*24*3600 { // otherwise a part refuses it
		wait, q.WaitS = min(wait, maxWait.Seconds()), 0
	}
	if err = t.inTurn(parts); err == nil {
		for until := c.asked.Add(time.Duration(wait * float64(time.Second))); err == nil && t.waits(until); {
			began, wait := time.Now(), min(slice, time.Until(until))
			err = t.atOnce(parts, wait)
			if err != nil || len(t.got) > 0 || time.Since(began) > wait/2 {
				continue
			}
			if exhausted, _ := t.left(parts); exhausted {
				break // the frontiers are not kept open, and do not wait
			}
			time.Sleep(time.Duration(soon * float64(time.Second)))
		}
	}
	if err == nil {
		err = t.confirm(parts)
	}
	if err != nil && len(t.got) == 0 {
		return err
	}
	return t.reply()
}

// waits counts a request that waits, until it is taken from waiting: they never use all that there may be.
func (c *call) waits() error {
	if most := c.r.o.MaxRequests; c.r.waiting.Add(1) > int64(most-most/8) {
		c.r.waiting.Add(-1)
		return busy("too many requests wait for leases: try again")
	}
	return nil
}

// waits reports whether the client still waits for its first lease.
func (t *taking) waits(until time.Time) bool {
	answered := slices.ContainsFunc(t.c.r.parts, func(p *part) bool { x, ok := t.last[p]; return ok && x.err == nil })
	return len(t.got) == 0 && answered && time.Now().Before(until) && t.c.q.Context().Err() == nil && t.c.r.closing.Err() == nil
}

// ask asks a part. The request goes on when the client has gone, since leases may come.
func (t *taking) ask(p *part, q takeRequest, wait time.Duration) taken {
	q.WaitS += wait.Seconds()
	body, _ := json.Marshal(q)
	x := taken{part: p, after: time.Since(t.c.asked)}
	b, err := t.c.ask(context.WithoutCancel(t.c.q.Context()), p, asking{method: "POST", path: "/v1/leases", body: body, wait: wait})
	if err == nil {
		err = json.Unmarshal(b, &x)
	}
	x.err = err
	return x
}

// take takes in an answer. It returns the error of a request that every part would refuse.
func (t *taking) take(x taken) error {
	t.last[x.part] = x
	if x.err != nil && !away(x.err) {
		return x.err
	}
	if len(x.Leases) > 0 {
		t.got = append(t.got, x)
		hosts := map[string]bool{}
		for _, b := range x.Leases {
			t.c.hold(2 * len(b))
			l, _ := objectOf(b)
			hosts[l.text("host")] = true
		}
		t.max, t.hosts = t.max-len(x.Leases), t.hosts-len(hosts)
	}
	return nil
}

// inTurn asks the parts one after the other, without a wait, beginning with another each time. Those that
// did not answer lately come last.
func (t *taking) inTurn(parts []*part) error {
	first := int(t.c.r.turn.Add(1) % uint32(len(parts)))
	order := append(slices.Clone(parts[first:]), parts[:first]...)
	now := time.Now().UnixNano()
	slices.SortStableFunc(order, func(a, b *part) int { return cmp.Compare(max(now, a.rests.Load()), max(now, b.rests.Load())) })
	for _, p := range order {
		if len(t.got) > 0 && (p.resting() || t.max <= 0 || t.hosts <= 0) {
			return nil
		}
		q := t.q
		q.Max, q.Hosts = t.max, t.hosts
		answer := make(chan taken, 1)
		t.c.r.going.Go(func() { answer <- t.ask(p, q, 0) })
		x := taken{part: p, err: busy("part %s has not answered yet", p.name)}
		select {
		case x = <-answer:
		case <-time.After(slow):
			t.c.r.going.Go(func() { t.c.giveBackRest(answer, 1) })
		}
		if err := t.take(x); err != nil {
			return err
		}
	}
	return nil
}

// atOnce lets all parts wait for a lease. The first that has one wins; what others hand out meanwhile they
// get back.
func (t *taking) atOnce(parts []*part, wait time.Duration) error {
	answers := make(chan taken, len(parts))
	q := t.q
	q.Max, q.Hosts = t.max, t.hosts
	for _, p := range parts {
		t.c.r.going.Go(func() { answers <- t.ask(p, q, wait) })
	}
	for left := len(parts); left > 0; left-- {
		select {
		case x := <-answers:
			err := t.take(x)
			if err == nil && len(t.got) == 0 {
				continue
			}
			left--
			t.c.r.going.Go(func() { t.c.giveBackRest(answers, left) })
			return err
		case <-t.c.q.Context().Done():
			t.c.r.going.Go(func() { t.c.giveBackRest(answers, left) })
			return t.c.q.Context().Err()
		}
	}
	return nil
}

// giveBackRest waits for answers that are not needed any more.
func (c *call) giveBackRest(answers <-chan taken, n int) {
	for range n {
		c.giveBack(<-answers)
	}
}

// giveBack gives leases back that the client does not get: backward, so that the first returns to the head
// of its queue.
func (c *call) giveBack(x taken) {
	if len(x.Leases) == 0 {
		return
	}
	var body bytes.Buffer
	for _, b := range slices.Backward(x.Leases) {
		l, _ := objectOf(b)
		back := object{}
		back.set("lease", l.text("lease"))
		back.set("result", "requeue")
		back.set("uncontacted", true)
		body.Write(append(back.bytes(), '\n'))
	}
	ctx := context.WithoutCancel(c.q.Context())
	if _, err := c.ask(ctx, x.part, asking{method: "POST", path: "/v1/done", body: body.Bytes(), kind: linesType, accept: linesType}); err != nil {
		c.r.o.Logger.Warn("leases were not given back: their hosts wait until they end", "partition", x.part.name, "leases", len(x.Leases), "error", err)
	}
}

// left returns whether all parts say that nothing is left, and the error of one that did not answer.
func (t *taking) left(parts []*part) (exhausted bool, err error) {
	exhausted = true
	for _, p := range parts {
		x, ok := t.last[p]
		if ok && x.err != nil {
			err = x.err
		}
		exhausted = exhausted && ok && x.Exhausted
	}
	return exhausted && err == nil, err
}

// confirm makes sure that nothing is left if the parts said so: links travel from part to part. Without
// leases and with a part that does not answer it returns an error.
func (t *taking) confirm(parts []*part) error {
	if len(t.got) > 0 {
		return nil
	}
	exhausted, err := t.left(parts)
	if err != nil || !exhausted {
		return err
	}
	before, err := t.c.progress(t.q.Crawls)
	if err == nil {
		err = t.inTurn(t.c.r.parts)
	}
	if err != nil || len(t.got) > 0 {
		return err
	}
	if exhausted, err = t.left(t.c.r.parts); err != nil {
		return err
	}
	after, err := t.c.progress(t.q.Crawls)
	if err != nil {
		return err
	}
	if exhausted && before != after {
		again := soon
		t.last = map[*part]taken{parts[0]: {NextS: &again}}
	}
	return nil
}

// progress is what the parts have taken in and handed out so far, of crawls or of all: it only rises.
func (c *call) progress(crawls []string) (sum int64, err error) {
	paths := []string{"/v1/stats"}
	for i, name := range crawls {
		paths = append(paths[:i], "/v1/crawls/"+url.PathEscape(name))
	}
	for _, path := range paths {
		all, errs := c.asks(c.r.parts, func(*part) asking { return asking{method: "GET", path: path} })
		for i, b := range all {
			if err := errs[i]; err != nil && problemOf(err).kind != "unknown-crawl" {
				return 0, err
			}
			var x struct {
				Added, Duplicates int64
				HandedOut         int64 `json:"handed_out"`
			}
			_ = json.Unmarshal(b, &x)
			sum += x.Added + x.Duplicates + x.HandedOut
		}
	}
	return sum, nil
}

// reply answers with the leases, or with when to ask again.
func (t *taking) reply() error {
	x := taken{Leases: []json.RawMessage{}}
	var leases [][]byte
	for _, got := range t.got {
		for _, b := range got.Leases {
			leases = append(leases, got.part.routed(b, got.after))
		}
	}
	if len(t.got) == 0 {
		x.Exhausted = true
		for _, l := range t.last {
			x.Exhausted = x.Exhausted && l.Exhausted
			x.Held += l.Held
			if l.NextS != nil && (x.NextS == nil || *l.NextS < *x.NextS) {
				x.NextS = l.NextS
			}
		}
		if !x.Exhausted {
			x.Held = 0
		} else {
			x.NextS = nil
		}
	}
	b, err := json.Marshal(x)
	if err == nil { // the leases are JSON already
		list, rest, _ := bytes.Cut(b, []byte("[]"))
		err = t.c.lend(slices.Concat(list, []byte("["), bytes.Join(leases, []byte(",")), []byte("]"), rest, []byte("\n")), t.got...)
	}
	return err
}

// lend answers with leases, which the parts get back if the answer cannot be written.
func (c *call) lend(b []byte, leases ...taken) error {
	err := c.q.Context().Err()
	if err == nil {
		err = c.send(http.StatusOK, jsonType, b)
	}
	if err != nil {
		for _, x := range leases {
			c.giveBack(x)
		}
	}
	return err
}

// routed is a lease as clients get it: its ID has the part's tail, and its time counts from the client's
// request, to which the part was asked so much later.
func (p *part) routed(lease json.RawMessage, after time.Duration) json.RawMessage {
	o, err := objectOf(lease)
	id := o.text("lease")
	if err != nil || id == "" {
		return lease
	}
	o.set("lease", id+p.tail)
	if v, _ := o.find("sent_s"); v != nil {
		sent, _ := strconv.ParseFloat(string(v), 64)
		o.set("sent_s", json.Number(strconv.FormatFloat(sent+after.Seconds(), 'f', 3, 64)))
	}
	return o.bytes()
}

// owner returns the part of a lease, and the ID that it has there.
func (r *Router) owner(id string) (*part, string, error) {
	id, _, _ = strings.Cut(id, permitMark)
	at := strings.IndexByte(id, '.')
	if at >= 0 && r.by[id[at:]] != nil {
		return r.by[id[at:]], id[:at], nil
	}
	return nil, "", &problem{kind: "not-leased", Status: http.StatusConflict, Detail: "the lease is of no part of this router: routers that know each other's leases have parts of the same names"}
}

// onLease lets the part of a lease answer a request about it.
func (c *call) onLease() error {
	if len(c.query) > 0 {
		return badRequest("%.80q: there is no such parameter", c.q.URL.RawQuery)
	}
	if ids := strings.Split(c.q.PathValue("id"), ","); c.q.Method == "GET" && len(ids) > 1 {
		return c.getLeases(ids)
	}
	p, id, err := c.r.owner(c.q.PathValue("id"))
	if err != nil {
		return err
	}
	path := "/v1/leases/" + url.PathEscape(id)
	if rest := strings.SplitN(c.q.URL.Path, "/", 5); len(rest) == 5 {
		path += "/" + rest[4]
	}
	return c.forLease(p, path, c.q.PathValue("id"))
}

// getLeases describes several leases, without those that have ended.
func (c *call) getLeases(ids []string) error {
	by := map[*part]string{}
	for _, id := range ids {
		if p, own, err := c.r.owner(id); err == nil {
			by[p] += "," + url.PathEscape(own)
		}
	}
	parts := slices.DeleteFunc(slices.Clone(c.r.parts), func(p *part) bool { return by[p] == "" })
	after := time.Since(c.asked)
	found, errs := c.asks(parts, func(p *part) asking { return asking{method: "GET", path: "/v1/leases/-" + by[p]} }) // a list, also of one
	if err := errors.Join(errs...); err != nil {
		return err
	}
	leases := map[string]json.RawMessage{}
	for i, p := range parts {
		var x taken
		_ = json.Unmarshal(found[i], &x)
		for _, b := range x.Leases {
			l, _ := objectOf(b)
			leases[l.text("lease")+p.tail] = p.routed(b, after)
		}
	}
	x := taken{Leases: []json.RawMessage{}}
	for _, id := range ids {
		key, _, _ := strings.Cut(id, permitMark)
		if l := leases[key]; l != nil {
			permits, err := c.r.permits(id)
			if err == nil {
				l, err = c.withPermits(l, permits)
			}
			if err != nil {
				return err
			}
			x.Leases = append(x.Leases, l)
		}
	}
	return c.reply(x)
}

// postContact waits until a host may be contacted.
func (c *call) postContact() error {
	if err := c.waits(); err != nil {
		return err
	}
	defer c.r.waiting.Add(-1)
	return c.forLease(c.r.of("", c.q.PathValue("host")), c.q.URL.EscapedPath(), "")
}

// forLease asks a part for something that a lease may be the answer to: that of an ID, or one for a contact
// in its place.
func (c *call) forLease(p *part, path, id string) error {
	body, err := c.body()
	if err != nil {
		return err
	}
	permits, err := c.r.permits(id)
	if err != nil {
		return err
	}
	after := time.Since(c.asked)
	b, err := c.ask(context.WithoutCancel(c.q.Context()), p, asking{method: c.q.Method, path: path, body: body, wait: maxWait})
	if err != nil {
		return err
	}
	answer := json.RawMessage(p.routed(b, after))
	var fresh []taken
	if c.q.Method == "POST" && !strings.HasSuffix(path, "/extend") && bytes.Contains(b, []byte(`"lease":`)) {
		fresh = []taken{{part: p, Leases: []json.RawMessage{b}}}
	}
	if len(permits) > 0 {
		answer, err = c.withPermits(answer, permits)
	}
	if err == nil {
		err = c.lend(answer, fresh...)
	} else if len(fresh) > 0 {
		c.giveBack(fresh[0])
	}
	if err != nil && len(fresh) > 0 {
		c.endPermits([]*end{{permits: permits, line: object{{"uncontacted", json.RawMessage("true")}}}})
	}
	return err
}

// withPermits extends or ends the permits of a lease as its part has done with the lease, and completes the part's
// answer.
func (c *call) withPermits(answer json.RawMessage, permits []permit) (json.RawMessage, error) {
	o, err := objectOf(answer)
	switch {
	case err != nil:
	case c.q.Method == "DELETE":
		c.endPermits([]*end{{permits: permits}})
	case c.q.Method == "POST": // what was handed back has another deadline, too
		err = c.extend(permits, o.left())
	}
	if o.text("lease") != "" {
		o.set("lease", o.text("lease")+behind(permits))
		answer = o.bytes()
	}
	return answer, err
}
