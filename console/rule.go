// This file reads and writes what is set for a scope, all at once.

package console

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Rule is a frontier.Rule as JSON. Fields that are missing are not set.
type Rule struct {
	Delay        *Delay        `json:"delay,omitempty"`
	Concurrency  int           `json:"concurrency,omitempty"`
	Paused       *bool         `json:"paused,omitempty"`
	BlockedUntil time.Time     `json:"blocked_until,omitzero"`
	Priority     int           `json:"priority,omitempty"`
	Priorities   map[int]uint8 `json:"priorities,omitempty"`
	Limits       Limits        `json:"limits,omitzero"`
	HostLimits   Limits        `json:"host_limits,omitzero"`
	Weight       int           `json:"weight,omitempty"`
}

// Rule returns what the frontier calls it. Whether a scope may have it is for UpdateRule to say.
func (r *Rule) Rule() (frontier.Rule, error) {
	p, err := r.Delay.policy()
	x := frontier.Rule{
		Delay: p, Concurrency: r.Concurrency, BlockedUntil: r.BlockedUntil, Priority: r.Priority,
		Limits: r.Limits.of(), HostLimits: r.HostLimits.of(), Weight: r.Weight,
	}
	if r.Paused != nil {
		if x.Paused = frontier.Off; *r.Paused {
			x.Paused = frontier.On
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

// RuleOf is a rule as RuleList has it: what is set, by name, with delays in words.
func RuleOf(r frontier.Rule) map[string]any { return rule(r) }
