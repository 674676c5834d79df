// This file carries out operators' actions.

package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/faults"
	"github.com/seed-7440039f/frontier/scope"
)

// Duration is a time.Duration that JSON writes as text: "1m30s".
type Duration time.Duration

// MarshalText writes d as time.Duration.String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalJSON parses text as time.ParseDuration does.
func (d *Duration) UnmarshalJSON(b []byte) error {
	text := "0" // of null
	err := json.Unmarshal(b, &text)
	x, wrong := time.ParseDuration(text)
	if err != nil || wrong != nil {
		return fmt.Errorf("%.80s is no time; want one with its unit, in quotes, as in \"90s\"", b)
	}
	*d = Duration(x)
	return nil
}

// Limits is scope.Limits as JSON. Zero fields do not limit.
type Limits struct {
	Waiting int64    `json:"waiting,omitempty"`
	Served  int64    `json:"served,omitempty"`
	Bytes   int64    `json:"bytes,omitempty"`
	Errors  int64    `json:"errors,omitempty"`
	Depth   int      `json:"depth,omitempty"`
	Period  Duration `json:"period,omitzero"`
}

// String describes the limits.
func (l Limits) String() string {
	var all []string
	say := func(n int64, text string) {
		if n != 0 {
			all = append(all, text)
		}
	}
	say(l.Served, plural(l.Served, "page"))
	say(l.Bytes, Size(l.Bytes))
	say(l.Errors, plural(l.Errors, "failed contact"))
	say(l.Waiting, plural(l.Waiting, "URL")+" waiting")
	say(int64(l.Depth), fmt.Sprintf("URLs %d links deep", l.Depth))
	if len(all) == 0 {
		return "anything: no limit is set any more"
	}
	text := strings.Join(all, ", ") + " at most"
	if l.Period > 0 {
		text += ", within " + Ago(time.Duration(l.Period))
	}
	return text
}

func limitsOf(l scope.Limits) Limits {
	return Limits{Waiting: l.Waiting, Served: l.Served, Bytes: l.Bytes, Errors: l.Errors, Depth: l.Depth, Period: Duration(l.Period)}
}

func (l Limits) of() scope.Limits {
	return scope.Limits{Waiting: l.Waiting, Served: l.Served, Bytes: l.Bytes, Errors: l.Errors, Depth: l.Depth, Period: time.Duration(l.Period)}
}

// Delay is one of the two policies that an operator can set: Fixed, or Factor with Min and Max. Of other
// policies, which only the crawl's program can set, it has a description.
type Delay struct {
	Fixed  *Duration `json:"fixed,omitempty"`
	Factor *float64  `json:"factor,omitempty"`
	Min    Duration  `json:"min,omitzero"`
	Max    Duration  `json:"max,omitzero"`
	Words  string    `json:"words,omitempty"`
}

// delayOf returns the Delay of a policy.
func delayOf(p frontier.DelayPolicy) *Delay {
	if p == nil {
		return nil
	}
	k, least, most, ok := frontier.DelayParts(p)
	switch {
	case !ok:
		return &Delay{Words: delayWords(p)}
	case k == 0 && least == most:
		fixed := Duration(least)
		return &Delay{Fixed: &fixed}
	}
	return &Delay{Factor: &k, Min: Duration(least), Max: Duration(most)}
}

// String describes the policy.
func (d *Delay) String() string {
	if d == nil {
		return ""
	}
	if p, err := d.policy(); err == nil {
		return delayWords(p)
	}
	return d.Words
}

func (d *Delay) policy() (frontier.DelayPolicy, error) {
	switch {
	case d == nil:
		return nil, nil
	case d.Fixed != nil && d.Factor == nil && d.Min == 0 && d.Max == 0 && d.Words == "":
		return frontier.FixedDelay(time.Duration(*d.Fixed)), nil
	case d.Fixed == nil && d.Factor != nil && d.Words == "":
		return frontier.FactorDelay(*d.Factor, time.Duration(d.Min), time.Duration(d.Max)), nil
	}
	return nil, errors.New("delay: want fixed, or factor with min and max")
}

// delayWords describes a policy in the syntax that Action accepts.
func delayWords(p frontier.DelayPolicy) string { return fmt.Sprint(p) }

// Action is one thing to do. Which fields it needs depends on Do:
//
//	pause, resume            Scope
//	block                    Scope, Until or For; a zero Until ends the block
//	delay                    Scope, Delay
//	concurrency, priority    Scope, N
//	reprioritize             Scope, From, To
//	standing                 Scope, a host, N: its URLs are served with N priorities more, or
//	                         less if it is negative; 0 moves them back
//	limit                    Scope, Limits for all its hosts together
//	host-limit               Scope, Limits for each of its hosts
//	clear                    Scope: remove all settings of the scope
//	delete                   Scope: delete its waiting and scheduled URLs;
//	                         Dry: only count them
//	forget                   Scope, a host: forget what was learned about it
//	end-leases               Lease, or Client, Scope or both: end leases of a server's clients
//	crawl-now, add           URLs, Crawl, Depth; Options.Normalize spells the URLs,
//	                         Options.Adding finds the Crawl
//	checkpoint, stop
//
// For delay, concurrency, priority, reprioritize and limits, None in place of the value takes back
// what is set.
type Action struct {
	Do     string     `json:"do"`
	Scope  string     `json:"scope,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
	For    Duration   `json:"for,omitzero"`
	Delay  *Delay     `json:"delay,omitempty"`
	N      int        `json:"n,omitempty"`
	None   bool       `json:"none,omitempty"`
	From   int        `json:"from,omitempty"`
	To     int        `json:"to,omitempty"`
	Limits Limits     `json:"limits,omitzero"`
	Dry    bool       `json:"dry,omitempty"`
	URLs   []string   `json:"urls,omitempty"`
	Crawl  CrawlID    `json:"crawl,omitzero"`
	Depth  int        `json:"depth,omitempty"` // of the URLs: number of links from a seed
	Lease  string     `json:"lease,omitempty"`
	Client string     `json:"client,omitempty"`
}

// CrawlID is a crawl's number, or its name where crawls have names (Options.Adding). In JSON it is a
// number or a string.
type CrawlID struct {
	Number uint32
	Name   string // empty: use the number
}

// MarshalJSON implements json.Marshaler.
func (c CrawlID) MarshalJSON() ([]byte, error) {
	if c.Name != "" {
		return json.Marshal(c.Name)
	}
	return json.Marshal(c.Number)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *CrawlID) UnmarshalJSON(b []byte) error {
	*c = CrawlID{}
	if b[0] == '"' {
		return json.Unmarshal(b, &c.Name)
	}
	if err := json.Unmarshal(b, &c.Number); err != nil {
		return fmt.Errorf("%.80s is no crawl; want its name, in quotes, or its number", b)
	}
	return nil
}

// onlyNumbers is Options.Adding for crawls without names.
func onlyNumbers(c CrawlID) (number uint32, done func(), err error) {
	if c.Name != "" {
		return 0, nil, fmt.Errorf("%w: crawl %.80q: crawls have numbers here, and no names", ErrAction, c.Name)
	}
	return c.Number, func() {}, nil
}

// Result reports what an Action did, and its extent: what the Scope holds afterwards, or what was
// deleted.
type Result struct {
	Said  string `json:"said"`            // one sentence
	Hosts int64  `json:"hosts,omitempty"` // hosts with URLs, as far as they were counted
	Count int64  `json:"count,omitempty"` // URLs
	Path  string `json:"path,omitempty"`  // the checkpoint's folder
}

// ErrAction is wrapped by the error of an Action that cannot be carried out. Nothing was changed.
var ErrAction = errors.New("console: cannot do that")

// act carries out an action. When it returns, the change is durable and applies from the next hand-out
// on.
func (c *Console) act(ctx context.Context, a Action) (Result, error) {
	do, ok := actions[a.Do]
	if !ok {
		return Result{}, fmt.Errorf("%w: there is no action %.40q; there are %s", ErrAction, a.Do, strings.Join(slices.Sorted(maps.Keys(actions)), ", "))
	}
	var of scope.Scope
	if err := a.fits(do); err != nil {
		return Result{}, err
	}
	if a.valueless() != a.None {
		return Result{}, fmt.Errorf("%w: %s: want either %s, or none to take back what is set", ErrAction, a.Do, strings.Fields(do.takes)[0])
	}
	if a.Lease+a.Client != "" {
		a.Scope = cmp.Or(a.Scope, "*")
	}
	if do.scoped {
		var err error
		if of, err = ScopeOf(c.f, a.Scope); err != nil {
			return Result{}, fmt.Errorf("%w: %s: %w", ErrAction, a.Do, err)
		}
	}
	if a.Dry {
		x := c.concern(ctx, of)
		return Result{Said: fmt.Sprintf("this deletes what waits of %s: %s", of, x), Hosts: x.hosts, Count: x.urls}, nil
	}
	r, err := do.run(c, ctx, a, of)
	if err != nil {
		return r, err
	}
	if do.scoped && a.Do != "delete" && a.Do != "end-leases" {
		x := c.concern(ctx, of)
		if r.Said += ": " + x.String(); x.hosts == 0 && !x.crawl && !x.more && do.sets && !a.lifts() {
			r.Said += "; the rule is kept for when one comes"
		}
		r.Said += c.narrower(a, of)
		r.Hosts, r.Count = x.hosts, x.urls
	}
	a.URLs = nil // they may contain passwords
	what, _ := json.Marshal(a)
	who, _ := ctx.Value(whoKey{}).(string)
	c.log.Info("an operator changed something", "action", string(what), "hosts", r.Hosts, "urls", r.Count, "who", cmp.Or(who, "the owner of the folder"))
	return r, nil
}

// fits returns an error if a has a member that has no effect.
func (a Action) fits(do action) error {
	given := map[string]json.RawMessage{}
	b, _ := json.Marshal(a)
	_ = json.Unmarshal(b, &given)
	for _, member := range slices.Sorted(maps.Keys(given)) {
		if !slices.Contains(strings.Fields("do "+do.takes), member) && (member != "scope" || !do.scoped) {
			return fmt.Errorf("%w: %s has no %s", ErrAction, a.Do, member)
		}
	}
	return nil
}

type action struct {
	scoped bool
	sets   bool   // the setting also applies to hosts that come later
	takes  string // members of an Action beside do and scope
	run    func(c *Console, ctx context.Context, a Action, s scope.Scope) (Result, error)
}

// said returns a Result with a sentence, or err.
func said(err error, format string, args ...any) (Result, error) {
	if err != nil {
		return Result{}, err
	}
	return Result{Said: fmt.Sprintf(format, args...)}, nil
}

var actions = map[string]action{
	"pause": {true, true, "", func(c *Console, _ context.Context, _ Action, s scope.Scope) (Result, error) {
		return said(c.f.Pause(s), "%s is paused", s)
	}},
	"resume": {true, false, "", func(c *Console, _ context.Context, _ Action, s scope.Scope) (Result, error) {
		return said(c.f.Resume(s), "%s goes on", s)
	}},
	"block": {true, true, "until for", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		until, err := a.until(c.f.Now())
		if err != nil {
			return Result{}, err
		}
		if until.IsZero() {
			return said(c.f.UpdateRule(s, func(r *frontier.Rule) { r.BlockedUntil = time.Time{} }), "%s is not blocked any more", s)
		}
		return said(c.f.BlockUntil(s, until), "%s is blocked until %s", s, until.UTC().Format(time.RFC3339))
	}},
	"delay": {true, true, "delay none", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		p, err := a.Delay.policy()
		if err != nil {
			return Result{}, fmt.Errorf("%w: %w", ErrAction, err)
		}
		if p == nil {
			return said(c.f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = nil }), "no delay is set for %s any more", s)
		}
		return said(c.f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = p }), "the delay of %s is %s", s, delayWords(p))
	}},
	"concurrency": {true, true, "n none", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		return said(c.f.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = a.N }), "%s has %s", s, number(a.N, "fetches at once"))
	}},
	"priority": {true, true, "n none", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		if most := len(c.f.Stats().WaitingBy); a.N < 0 || a.N > most {
			return Result{}, fmt.Errorf("%w: priority: there is no priority %d; want 1 to %d, or none", ErrAction, a.N, most)
		}
		return said(c.f.UpdateRule(s, func(r *frontier.Rule) { r.Priority, r.Priorities = a.N, frontier.PriorityMap{} }), "%s has %s", s, number(a.N, "for its priority"))
	}},
	"standing": {true, false, "n", func(c *Console, ctx context.Context, a Action, s scope.Scope) (Result, error) {
		host, err := oneHost(s)
		if err != nil {
			return Result{}, err
		}
		if most := len(c.f.Stats().WaitingBy) - 1; a.N < -most || a.N > most {
			return Result{}, fmt.Errorf("%w: standing: %d levels; want %d to %d, or 0 for none", ErrAction, a.N, -most, most)
		}
		text := host + " is " + Standing(a.N)
		if r := c.f.RuleOf(host); a.N != 0 && (r.Priority != 0 || r.Priorities != frontier.PriorityMap{}) {
			text += ", but a rule about its priorities wins"
		}
		if _, err := c.views.Host(ctx, host); errors.Is(err, frontier.ErrUnknownHost) {
			text += "; no host of the crawl had this name"
		}
		return said(c.f.SetStanding(host, a.N), "%s", text)
	}},
	"reprioritize": {true, true, "to from none", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		if a.From < 1 || a.From >= len(frontier.PriorityMap{}) || a.To < 0 || a.To >= len(frontier.PriorityMap{}) {
			return Result{}, fmt.Errorf("%w: reprioritize from %d to %d: want priorities of the crawl", ErrAction, a.From, a.To)
		}
		return said(c.f.UpdateRule(s, func(r *frontier.Rule) { r.Priorities[a.From] = uint8(a.To) }), "%s: what has priority %d is served with %d", s, a.From, a.To)
	}},
	"limit": {true, true, "limits none", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		return said(c.f.UpdateRule(s, func(r *frontier.Rule) {
			if r.Limits = a.Limits.of(); a.None {
				r.HostLimits = scope.Limits{}
			}
		}), "%s may have %s", s, a.Limits)
	}},
	"host-limit": {true, true, "limits none", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		rest := ""
		err := c.f.UpdateRule(s, func(r *frontier.Rule) {
			if r.HostLimits = a.Limits.of(); r.Limits != (scope.Limits{}) {
				rest = "; limits of all together stay"
			}
		})
		return said(err, "each host of %s may have %s%s", s, a.Limits, rest)
	}},
	"clear": {true, false, "", func(c *Console, _ context.Context, _ Action, s scope.Scope) (Result, error) {
		return said(c.f.Clear(s), "nothing is set for %s any more", s)
	}},
	"delete": {true, false, "dry", func(c *Console, ctx context.Context, _ Action, s scope.Scope) (Result, error) {
		x := c.concern(ctx, s)
		n, err := c.f.Delete(ctx, s)
		text := fmt.Sprintf("%s of %s deleted", plural(n, "URL"), s)
		if x.hosts == 0 && !x.crawl && !x.more && n == 0 {
			text += ": " + x.String()
		}
		return Result{Said: text, Hosts: x.hosts, Count: n}, err
	}},
	"forget": {true, false, "", func(c *Console, _ context.Context, _ Action, s scope.Scope) (Result, error) {
		host, err := oneHost(s)
		if err != nil {
			return Result{}, err
		}
		return said(c.f.Forget(host), "what was learned of %s is forgotten", s)
	}},
	"end-leases": {true, false, "lease client", func(c *Console, _ context.Context, a Action, s scope.Scope) (Result, error) {
		return c.endLeases(a, s)
	}},
	"crawl-now": {false, false, "urls crawl depth", func(c *Console, ctx context.Context, a Action, _ scope.Scope) (Result, error) {
		return c.add(ctx, a, c.f.CrawlNow, "to be crawled next")
	}},
	"add": {false, false, "urls crawl depth", func(c *Console, ctx context.Context, a Action, _ scope.Scope) (Result, error) {
		return c.add(ctx, a, c.f.Add, "added")
	}},
	"checkpoint": {false, false, "", func(c *Console, ctx context.Context, _ Action, _ scope.Scope) (Result, error) {
		if c.o.Checkpoint == nil {
			return Result{}, fmt.Errorf("%w: it makes no checkpoints: it was started without a folder for them", ErrAction)
		}
		path, err := c.o.Checkpoint(ctx)
		return Result{Said: "a checkpoint is in " + path, Path: path}, err
	}},
	"stop": {false, false, "", func(c *Console, _ context.Context, _ Action, _ scope.Scope) (Result, error) {
		if c.o.Stop == nil {
			return Result{}, fmt.Errorf("%w: there is nothing to stop", ErrAction)
		}
		c.o.Stop()
		return Result{Said: "it stops"}, nil
	}},
}

// oneHost returns the host of a scope, for actions that take one host.
func oneHost(s scope.Scope) (string, error) {
	if host := s.Hosts().Host(); host != "" {
		return host, nil
	}
	return "", fmt.Errorf("%w: want one host at a time, not %s", ErrAction, s)
}

func number(n int, of string) string {
	if n == 0 {
		return "none of its own " + of
	}
	return fmt.Sprint(n, " ", of)
}

// lifts reports whether an action removes a setting.
func (a Action) lifts() bool { return a.None || a.Until != nil && a.Until.IsZero() }

// valueless reports whether an action that sets a value has none.
func (a Action) valueless() bool {
	switch a.Do {
	case "delay":
		return a.Delay == nil
	case "priority", "concurrency":
		return a.N == 0
	case "reprioritize":
		return a.To == 0
	case "limit", "host-limit":
		return a.Limits == Limits{}
	}
	return false
}

// until returns when a block ends; the zero time: at once.
func (a Action) until(now time.Time) (time.Time, error) {
	switch {
	case a.Until != nil && a.For != 0:
		return time.Time{}, fmt.Errorf("%w: block: want until or for, not both", ErrAction)
	case a.For < 0:
		return time.Time{}, fmt.Errorf("%w: block: for %s", ErrAction, time.Duration(a.For))
	case a.For > 0:
		return now.Add(time.Duration(a.For)), nil
	case a.Until != nil && !a.Until.IsZero() && !a.Until.After(now):
		return time.Time{}, fmt.Errorf("%w: block: until %s has passed; the zero time ends a block", ErrAction, a.Until.UTC().Format(time.RFC3339))
	case a.Until != nil:
		return *a.Until, nil
	}
	return time.Time{}, fmt.Errorf("%w: block: want until or for", ErrAction)
}

// add adds all URLs or none. Errors do not quote them: they may contain passwords.
func (c *Console) add(ctx context.Context, a Action, add func(context.Context, ...frontier.Entry) (int, error), what string) (Result, error) {
	if len(a.URLs) == 0 {
		return Result{}, fmt.Errorf("%w: %s: no URLs", ErrAction, a.Do)
	}
	entries := make([]frontier.Entry, len(a.URLs))
	var errs faults.List
	for i, raw := range a.URLs {
		u, err := c.o.Normalize(raw)
		errs.If(err != nil, "URL %d of %d: %w", i+1, len(a.URLs), err)
		entries[i] = frontier.Entry{URL: u, Crawl: a.Crawl.Number, Depth: a.Depth}
		if err != nil || c.o.Wanted == nil {
			continue
		}
		err = c.o.Wanted(entries[i])
		errs.If(err != nil, "URL %d of %d is outside what the crawl is about: %w; to add it, give it to frontier crawl in the crawl's folder as a seed", i+1, len(a.URLs), err)
	}
	if err := errors.Join(errs...); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrAction, err)
	}
	crawl, done, err := c.o.Adding(a.Crawl)
	if err != nil {
		return Result{}, err
	}
	defer done()
	for i := range entries {
		entries[i].Crawl = crawl
	}
	n, err := add(ctx, entries...)
	text := fmt.Sprintf("%s %s", plural(int64(n), "URL"), what)
	if known := int64(len(entries) - n); known > 0 && err == nil && a.Do == "add" {
		text += fmt.Sprintf("; %s known before, which \"now\" fetches again", plural(known, "URL"))
	}
	return Result{Said: text, Count: int64(n)}, err
}
