// This file keeps hosts apart that are one group, whichever parts they are of.
//
// A group has a host of its own, whose name is made of the group's, at the part which that name falls to. Who
// joins the group with a lease gets a lease for a contact with this host, too, the permit. So all contacts
// with the group wait for each other there, and a router needs no memory of them: the lease's ID has the
// permits behind it. While the permit of another is out, the lease is refused. When it is given back its host
// gets a turn: otherwise all hosts of a busy group would be handed out in vain, again and again.

package route

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/internal/jsonl"
)

const (
	permitMark  = "~"                    // before each permit in a lease's ID
	permitWait  = 500 * time.Millisecond // for the permit of another to end
	numberMost  = 32                     // characters of a number that is passed on
	permitsMost = 16                     // of a lease
	turnsMost   = time.Minute            // until a host comes again that was refused
	noted       = 2 * turnsMost          // how long a lease is remembered
)

// permit is a lease for a contact with a group's host.
type permit struct {
	part *part
	id   string // at the part
}

// groups has what a router remembers of groups, by the IDs of leases without permits. It may forget all of
// it: then hosts come again too early and wait once more, and the permits of clients that do not use the new
// IDs end at their deadlines.
type groups struct {
	joins sync.Map // leases whose joins are under way
	waits sync.Map // groups for which a join waits: all others are refused at once, or they would keep all workers of a client

	mu     sync.Mutex
	turns  map[string]time.Time // by group: when the next host that is refused comes again
	leases map[string]joined
	swept  time.Time // when the old ones were last forgotten
}

// joined is a lease that has joined groups, or was refused.
type joined struct {
	permits string    // behind the ID
	again   float64   // seconds from the end of the lease until its host comes again
	until   time.Time // it is remembered
}

// refuse gives a lease the next turn of a group, for which nothing is free before next.
func (g *groups) refuse(id, group string, next time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	at := g.turns[group]
	if first := now.Add(next); at.Before(first) {
		at = first
	}
	if last := now.Add(turnsMost); at.After(last) {
		at = last
	}
	g.turns[group] = at.Add(permitWait)
	g.noteLocked(id, joined{permits: g.leases[id].permits, again: at.Sub(now).Seconds()}, now)
}

// note remembers the permits of a lease.
func (g *groups) note(id, permits string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noteLocked(id, joined{permits: permits}, time.Now())
}

func (g *groups) noteLocked(id string, x joined, now time.Time) {
	if now.Sub(g.swept) > noted/4 {
		g.swept = now
		maps.DeleteFunc(g.leases, func(_ string, x joined) bool { return x.until.Before(now) })
		maps.DeleteFunc(g.turns, func(_ string, at time.Time) bool { return at.Before(now) })
	}
	x.until = now.Add(noted)
	g.leases[id] = x
}

// of returns what is remembered of a lease.
func (g *groups) of(id string) joined {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.leases[id]
}

// ended forgets a lease. It keeps one that was refused, whose end says the same again when it is repeated.
func (g *groups) ended(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.leases[id].again == 0 {
		delete(g.leases, id)
	}
}

// permits returns those of a lease, from its ID or from memory.
func (r *Router) permits(id string) (all []permit, err error) {
	id, behind, found := strings.Cut(id, permitMark)
	if behind = strings.TrimPrefix(behind, permitMark); !found {
		behind = r.groups.of(id).permits
	}
	for one := range strings.SplitSeq(behind, permitMark) {
		p, own, err := r.owner(one)
		if one == "" {
			continue
		}
		if len(all) == permitsMost {
			err = badRequest("the lease has joined too many groups, or never was: want %d at most", permitsMost)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, permit{p, own})
	}
	return all, nil
}

// behind is how permits stand behind a lease's ID.
func behind(all []permit) string {
	var b strings.Builder
	for _, x := range all {
		b.WriteString(permitMark + x.id + x.part.tail)
	}
	return b.String()
}

// plainGroup is what a group's name may consist of for its host to look like it.
var plainGroup = regexp.MustCompile(`^[0-9a-z.:/-]{0,49}[0-9a-z]$`)

// hostOfGroup returns the host of a group. No URL has such a host: the domain is reserved (RFC 2606).
func hostOfGroup(name string) string {
	label := strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(name)
	if !plainGroup.MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		label = hex.EncodeToString(sum[:16])
	}
	return "group-" + label + ".invalid"
}

// postJoin makes a lease's host join a group.
func (c *call) postJoin() error {
	id := c.q.PathValue("id")
	p, own, err := c.r.owner(id)
	if err != nil {
		return err
	}
	if len(c.r.parts) == 1 {
		return c.onLease()
	}
	var q struct{ Group string }
	body, err := c.body()
	if err != nil {
		return err
	}
	if err := jsonl.Decode(bytes.NewReader(body), &q); err != nil {
		return badRequest("the body: %v", err)
	}
	if q.Group == "" || len(q.Group) > 255 {
		return badRequest("group has %d bytes; want 1 to 255", len(q.Group))
	}
	key := own + p.tail
	if _, under := c.r.groups.joins.LoadOrStore(key, true); under {
		return busy("a join of this lease is under way: repeat it")
	}
	defer c.r.groups.joins.Delete(key)
	all, err := c.r.permits(id)
	if err != nil {
		return err
	}
	before, err := c.look(p, own)
	if err != nil {
		return err
	}
	all, has, err := c.valid(all, q.Group)
	if err != nil {
		return err
	}
	var fresh taken
	if !has {
		if len(all) == permitsMost {
			return badRequest("the lease has joined %d groups, and can join no more", permitsMost)
		}
		if fresh, err = c.permit(q.Group, before.left()); err != nil {
			return err
		}
		if len(fresh.Leases) == 0 {
			c.r.groups.refuse(key, q.Group, time.Duration(*fresh.NextS*float64(time.Second)))
			return &problem{kind: "group-busy", Status: http.StatusUnprocessableEntity, Detail: "the group " + q.Group + " may not be contacted now: give the lease back uncontacted"}
		}
		one, _ := objectOf(fresh.Leases[0])
		all = append(all, permit{fresh.part, one.text("lease")})
	}
	after := time.Since(c.asked)
	l, err := c.look(p, own)
	if err == nil && l.left() > before.left() { // it was extended meanwhile
		err = c.extend(all, l.left())
	}
	if err != nil {
		c.giveBack(fresh)
		return err
	}
	// From here on the permit ends with the lease, even if the client does not get this answer: it may join again.
	c.r.groups.note(key, behind(all))
	l, _ = objectOf(p.routed(l.bytes(), after))
	l.set("lease", key+behind(all))
	l.set("group", q.Group)
	return c.lend(append(l.bytes(), '\n'))
}

// look returns a lease as its part describes it.
func (c *call) look(p *part, id string) (object, error) {
	b, err := c.ask(c.q.Context(), p, asking{method: "GET", path: "/v1/leases/" + url.PathEscape(id)})
	if err != nil {
		return nil, err
	}
	return objectOf(b)
}

// left returns what is left of a lease, in seconds.
func (o object) left() (s float64) {
	b, _ := o.find("lease_s")
	_ = json.Unmarshal(b, &s)
	return s
}

// valid returns the permits that have not ended, and whether one of them is for a group.
func (c *call) valid(all []permit, group string) (rest []permit, has bool, err error) {
	for _, x := range all {
		o, err := c.look(x.part, x.id)
		if err != nil && problemOf(err).kind == "not-leased" {
			continue
		} else if err != nil {
			return nil, false, err
		}
		rest, has = append(rest, x), has || o.text("host") == hostOfGroup(group)
	}
	return rest, has, nil
}

// permit asks for a permit that lasts as long as the lease it is for. Without one, NextS says when to ask again.
func (c *call) permit(group string, lease float64) (taken, error) {
	host := hostOfGroup(group)
	x, wait := taken{part: c.r.home(host)}, permitWait
	if _, others := c.r.groups.waits.LoadOrStore(group, true); others {
		wait = 0
	} else {
		defer c.r.groups.waits.Delete(group)
	}
	ctx := context.WithoutCancel(c.q.Context())
	body, _ := json.Marshal(map[string]float64{"wait_s": wait.Seconds(), "lease_s": rounded(lease)})
	b, err := c.ask(ctx, x.part, asking{method: "POST", path: "/v1/hosts/" + host + "/contact", body: body, wait: wait})
	if err != nil {
		return x, err
	}
	again := soon
	o, err := objectOf(b)
	if o.text("lease") == "" {
		if b, _ := o.find("next_s"); b != nil {
			_ = json.Unmarshal(b, &again)
		}
		x.NextS = &again
		return x, err
	}
	x.Leases = []json.RawMessage{b}
	body, _ = json.Marshal(map[string]string{"group": group}) // for the group's own delay
	_, err = c.ask(ctx, x.part, asking{method: "POST", path: "/v1/leases/" + url.PathEscape(o.text("lease")) + "/join", body: body})
	if err != nil {
		c.giveBack(x)
		if x.Leases = nil; problemOf(err).kind == "group-busy" {
			again = 1
			return taken{part: x.part, NextS: &again}, nil
		}
	}
	return x, err
}

// rounded is what is asked for, so that a permit lasts as long as the lease: what is left of that was cut off
// to milliseconds.
func rounded(lease float64) float64 { return lease + 0.001 }

// extend lets permits last as long as their lease, which was extended before.
func (c *call) extend(all []permit, lease float64) error {
	body, _ := json.Marshal(map[string]float64{"lease_s": rounded(lease)})
	for _, x := range all {
		if _, err := c.ask(c.q.Context(), x.part, asking{method: "POST", path: "/v1/leases/" + url.PathEscape(x.id) + "/extend", body: body}); err != nil {
			return err
		}
	}
	return nil
}

// turn makes the end of a lease that was refused say when its host comes again.
func (e *end) turn(again float64) {
	var own float64
	b, _ := e.line.find("retry_after_s")
	_ = json.Unmarshal(b, &own)
	if e.line.text("result") == "requeue" && again > own {
		e.line.set("retry_after_s", again)
	}
}

// ended reports whether the lease has ended, by this end or before.
func (e *end) ended() bool {
	if e.answer == nil {
		return false
	}
	b, _ := e.answer.find("error")
	return b == nil || bytes.Contains(b, []byte(problemBase+"not-leased"))
}

// endPermits ends those of leases that have ended: each was a contact as long as the lease's. A permit whose
// part does not answer ends at its deadline.
func (c *call) endPermits(all []*end) {
	var parts []*part
	var lines [][]byte
	for _, e := range all {
		for _, x := range e.permits {
			o := object{}
			o.set("lease", x.id)
			o.set("result", "requeue")
			for _, name := range []string{"uncontacted", "ended_ago_s", "duration_s"} {
				if v, _ := e.line.find(name); len(v) > 0 && len(v) <= numberMost { // the lease's part has accepted it
					o.set(name, v)
				}
			}
			parts, lines = append(parts, x.part), append(lines, o.bytes())
		}
	}
	if len(lines) == 0 {
		return
	}
	on := &call{r: c.r, client: c.r.client, q: c.q.WithContext(context.WithoutCancel(c.q.Context()))} // the client may have gone
	errs := on.inLines("/v1/done", parts, func(i int) []byte { return lines[i] }, func(int, json.RawMessage) {})
	for p, err := range errs {
		c.r.o.Logger.Warn("a group waits until the deadline of a lease", "partition", p.name, "error", err)
	}
}
