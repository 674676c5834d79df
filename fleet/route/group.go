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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier/internal/jsonl"
)

const (
	permitMark = "~"                    // before each permit in a lease's ID
	permitWait = 500 * time.Millisecond // for the permit of another to end
	turnsMost  = time.Minute            // until a host comes again that was refused
	noted      = 2 * turnsMost          // how long a lease is remembered, in case its client does not use the new ID
)

// permit is a lease for a contact with a group's host.
type permit struct {
	part *part
	id   string // at the part
}

// groups has what a router remembers of groups. It may forget all of it: then hosts come again too early and
// wait once more, and permits end at their deadlines.
type groups struct {
	mu     sync.Mutex
	turns  map[string]time.Time // by group: when the next host that is refused comes again
	leases map[string]joined    // by ID
}

// joined is a lease that has joined groups, or was refused.
type joined struct {
	permits string    // behind the ID
	again   time.Time // its host comes again no earlier
	until   time.Time // it is remembered
}

// refuse gives a lease the next turn of a group, for which nothing is free before next.
func (g *groups) refuse(id, group string, next time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	maps.DeleteFunc(g.turns, func(_ string, at time.Time) bool { return at.Before(now) })
	at := g.turns[group]
	if first := now.Add(next); at.Before(first) {
		at = first
	}
	if last := now.Add(turnsMost); at.After(last) {
		at = last
	}
	g.turns[group] = at.Add(permitWait)
	g.noteLocked(id, joined{permits: g.leases[id].permits, again: at}, now)
}

// note remembers the permits of a lease.
func (g *groups) note(id, permits string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noteLocked(id, joined{permits: permits}, time.Now())
}

func (g *groups) noteLocked(id string, x joined, now time.Time) {
	if len(g.leases)%1024 == 1023 {
		maps.DeleteFunc(g.leases, func(_ string, x joined) bool { return x.until.Before(now) })
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

// ended forgets a lease.
func (g *groups) ended(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.leases, id)
}

// permits returns those of a lease, and how they stand behind its ID.
func (r *Router) permits(id string) (all []permit, behind string) {
	id, behind, found := strings.Cut(id, permitMark)
	if behind = permitMark + behind; !found {
		behind = r.groups.of(id).permits
	}
	for one := range strings.SplitSeq(strings.TrimPrefix(behind, permitMark), permitMark) {
		if p, own, err := r.owner(one); err == nil {
			all = append(all, permit{p, own})
		}
	}
	return all, behind
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
	lease := asking{method: "GET", path: "/v1/leases/" + url.PathEscape(own)}
	b, err := c.ask(c.q.Context(), p, lease)
	if err != nil {
		return err
	}
	var l struct {
		LeaseS float64 `json:"lease_s"`
	}
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	all, behind := c.r.permits(id)
	key := own + p.tail
	has, err := c.permitted(all, q.Group)
	if err != nil {
		return err
	}
	var fresh []taken
	if !has {
		x, err := c.permit(q.Group, l.LeaseS)
		if err != nil {
			return err
		}
		if len(x.Leases) == 0 {
			c.r.groups.refuse(key, q.Group, time.Duration(*x.NextS*float64(time.Second)))
			return &problem{kind: "group-busy", Status: http.StatusUnprocessableEntity, Detail: "the group " + q.Group + " may not be contacted now: give the lease back uncontacted"}
		}
		one, _ := objectOf(x.Leases[0])
		behind += permitMark + one.text("lease") + x.part.tail
		c.r.groups.note(key, behind)
		fresh = append(fresh, x)
	}
	after := time.Since(c.asked)
	if b, err = c.ask(c.q.Context(), p, lease); err == nil {
		o, _ := objectOf(p.routed(b, after))
		o.set("lease", key+behind)
		o.set("group", q.Group)
		b = append(o.bytes(), '\n')
	}
	if err != nil {
		for _, x := range fresh {
			c.giveBack(x)
		}
		return err
	}
	return c.lend(b, fresh...)
}

// permitted reports whether one of the permits is for a group.
func (c *call) permitted(all []permit, group string) (bool, error) {
	host := hostOfGroup(group)
	for _, x := range all {
		if x.part != c.r.home(host) {
			continue
		}
		b, err := c.ask(c.q.Context(), x.part, asking{method: "GET", path: "/v1/leases/" + url.PathEscape(x.id)})
		if err != nil && problemOf(err).kind != "not-leased" {
			return false, err
		}
		if o, _ := objectOf(b); o.text("host") == host {
			return true, nil
		}
	}
	return false, nil
}

// permit asks for a permit that lasts as long as the lease it is for. Without one, NextS says when to ask again.
func (c *call) permit(group string, lease float64) (taken, error) {
	host := hostOfGroup(group)
	x := taken{part: c.r.home(host)}
	ctx := context.WithoutCancel(c.q.Context())
	body, _ := json.Marshal(map[string]float64{"wait_s": permitWait.Seconds(), "lease_s": lease + 0.001}) // it is cut off to milliseconds
	b, err := c.ask(ctx, x.part, asking{method: "POST", path: "/v1/hosts/" + host + "/contact", body: body, wait: permitWait})
	if err != nil {
		return x, err
	}
	again := soon
	if o, _ := objectOf(b); o.text("lease") == "" {
		err = json.Unmarshal(b, &x)
		if x.NextS == nil {
			x.NextS = &again
		}
		return x, err
	} else {
		x.Leases = []json.RawMessage{b}
		body, _ = json.Marshal(map[string]string{"group": group}) // for the group's own delay
		_, err = c.ask(ctx, x.part, asking{method: "POST", path: "/v1/leases/" + url.PathEscape(o.text("lease")) + "/join", body: body})
	}
	if err != nil {
		c.giveBack(x)
		x.Leases = nil
		if problemOf(err).kind == "group-busy" {
			again = 1
			return taken{part: x.part, NextS: &again}, nil
		}
	}
	return x, err
}

// extendPermits extends those of a lease before the lease itself.
func (c *call) extendPermits(all []permit, body []byte) error {
	for _, x := range all {
		if _, err := c.ask(c.q.Context(), x.part, asking{method: "POST", path: "/v1/leases/" + url.PathEscape(x.id) + "/extend", body: body}); err != nil {
			return err
		}
	}
	return nil
}

// turn makes the end of a lease that was refused say when its host comes again.
func (e *end) turn(again time.Time) {
	wait := time.Until(again).Seconds()
	var own float64
	b, _ := e.line.find("retry_after_s")
	_ = json.Unmarshal(b, &own)
	if e.line.text("result") == "requeue" && wait > own {
		e.line.set("retry_after_s", wait)
	}
}

// endPermits ends those of leases that end: each is a contact as long as the lease's was. A permit whose part
// does not answer ends at its deadline.
func (c *call) endPermits(all []*end) {
	var parts []*part
	var lines [][]byte
	for _, e := range all {
		for _, x := range e.permits {
			o := object{}
			o.set("lease", x.id)
			o.set("result", "requeue")
			for _, name := range []string{"uncontacted", "ended_ago_s", "duration_s"} {
				if v, _ := e.line.find(name); v != nil {
					o.set(name, v)
				}
			}
			parts, lines = append(parts, x.part), append(lines, o.bytes())
		}
	}
	if len(lines) == 0 {
		return
	}
	errs := c.inLines("/v1/done", parts, func(i int) []byte { return lines[i] }, func(int, json.RawMessage) {})
	for _, p := range slices.Compact(parts) {
		if err := errs[p]; err != nil {
			c.r.o.Logger.Warn("a group waits until the deadline of a lease", "partition", p.name, "error", err)
		}
	}
}
