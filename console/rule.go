// This file reads and writes whole rules.

package console

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/scope"
)

// Rule is a frontier.Rule as JSON. Missing fields are not set.
type Rule struct {
	Delay        *Delay        `json:"delay,omitempty"`
	Concurrency  int           `json:"concurrency,omitempty"`
	Paused       *bool         `json:"paused,omitempty"`
	Held         bool          `json:"held,omitempty"`
	BlockedUntil time.Time     `json:"blocked_until,omitzero"`
	Priority     int           `json:"priority,omitempty"`
	Priorities   map[int]uint8 `json:"priorities,omitempty"`
	Limits       Limits        `json:"limits,omitzero"`
	HostLimits   Limits        `json:"host_limits,omitzero"`
	Weight       int           `json:"weight,omitempty"`
}

// Rule converts r. UpdateRule checks whether a scope may have it.
func (r *Rule) Rule() (frontier.Rule, error) {
	p, err := r.Delay.policy()
	x := frontier.Rule{
		Delay: p, Concurrency: r.Concurrency, Held: r.Held, BlockedUntil: r.BlockedUntil, Priority: r.Priority,
		Limits: r.Limits.of(), HostLimits: r.HostLimits.of(), Weight: r.Weight,
	}
	if r.Paused != nil {
		if x.Paused = scope.Off; *r.Paused {
			x.Paused = scope.On
		}
	}
	for from, to := range r.Priorities {
		if from < 1 || from >= len(x.Priorities) {
			err = errors.Join(err, fmt.Errorf("priorities: there is no priority %d", from))
			continue
		}
		x.Priorities[from] = to
	}
	return x, err
}

// RuleOf converts a frontier.Rule.
func RuleOf(r frontier.Rule) Rule {
	x := Rule{
		Delay: delayOf(r.Delay), Concurrency: r.Concurrency, Held: r.Held, Priority: r.Priority,
		Limits: limitsOf(r.Limits), HostLimits: limitsOf(r.HostLimits), Weight: r.Weight,
	}
	if r.Paused != scope.Unset {
		on := r.Paused == scope.On
		x.Paused = &on
	}
	if !r.BlockedUntil.IsZero() {
		x.BlockedUntil = r.BlockedUntil.UTC()
	}
	for from, to := range r.Priorities {
		if to > 0 {
			if x.Priorities == nil {
				x.Priorities = map[int]uint8{}
			}
			x.Priorities[from] = to
		}
	}
	return x
}

// Set lists the fields that are set, by JSON name and in words.
func (r Rule) Set() (all []Setting) {
	say := func(set bool, name, words string) {
		if set {
			all = append(all, Setting{name, words})
		}
	}
	say(!r.BlockedUntil.IsZero(), "blocked_until", r.BlockedUntil.Format(time.RFC3339))
	say(r.Concurrency > 0, "concurrency", strconv.Itoa(r.Concurrency))
	say(r.Delay != nil, "delay", r.Delay.String())
	say(r.Held, "held", "yes")
	say(r.HostLimits != Limits{}, "host_limits", r.HostLimits.words())
	say(r.Limits != Limits{}, "limits", r.Limits.words())
	say(r.Paused != nil, "paused", yes(r.Paused))
	say(len(r.Priorities) > 0, "priorities", moved(r.Priorities))
	say(r.Priority > 0, "priority", strconv.Itoa(r.Priority))
	say(r.Weight > 0, "weight", strconv.Itoa(r.Weight))
	return all
}

func yes(x *bool) string {
	if x != nil && *x {
		return "yes"
	}
	return "no"
}

// moved describes which priorities are served as others.
func moved(to map[int]uint8) string {
	var said []string
	for _, from := range slices.Sorted(maps.Keys(to)) {
		said = append(said, fmt.Sprintf("%d as %d", from, to[from]))
	}
	return strings.Join(said, ", ")
}
