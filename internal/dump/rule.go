// This file handles the line of a rule: the settings of a scope.

package dump

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/internal/row"
)

// ruleMembers are the members of a rule's line. Lines of groups and crawls share some of them.
type ruleMembers struct {
	Rule         *string
	Name         *string
	Name64       []byte
	Delay        *lineDelay
	Concurrency  int
	Paused       string
	Withheld     string
	BlockedUntil lineTime
	Priorities   []int
	Limits       quota.Limits
	HostLimits   quota.Limits
}

// rule returns the line with the settings of a scope.
func (l *lineWriter) rule(s row.Scope, r *row.Rule) []byte {
	l.begin()
	l.scope("rule", s)
	l.delay("delay", r.Delay)
	l.Int("concurrency", int64(r.Concurrency))
	switch r.Paused {
	case 1:
		l.Word("paused", "on")
	case 2:
		l.Word("paused", "off")
	}
	if r.Held {
		l.Word("withheld", "on")
	}
	l.Time("blockedUntil", r.BlockedUntil)
	l.Int("priority", int64(r.Priority))
	if last := bytes.TrimRight(r.Priorities[1:], "\x00"); len(last) > 0 {
		l.Name("priorities")
		l.Writer = append(l.Writer, '[')
		for i, p := range last {
			if i > 0 {
				l.Writer = append(l.Writer, ',')
			}
			l.Writer = strconv.AppendUint(l.Writer, uint64(p), 10)
		}
		l.Writer = append(l.Writer, ']')
	}
	l.limits("limits", &r.Limits)
	l.limits("hostLimits", &r.HostLimits)
	return l.end()
}

func (r *Reader) ruleLine(l *line) error {
	s, err := l.scope("rule", *l.Rule)
	if err != nil {
		return err
	}
	d, err := l.Delay.policy()
	if err != nil {
		return err
	}
	rule := row.Rule{
		Delay: d, Concurrency: l.Concurrency, BlockedUntil: int64(l.BlockedUntil), Priority: l.Priority,
		Limits: l.Limits, HostLimits: l.HostLimits,
	}
	for i, p := range l.Priorities {
		if i >= row.MaxPriorities || p < 0 || p > row.MaxPriorities {
			return fmt.Errorf("priorities are %v; want at most %d of 0 to %d", l.Priorities, row.MaxPriorities, row.MaxPriorities)
		}
		rule.Priorities[i+1] = uint8(p)
	}
	switch l.Paused {
	case "":
	case "on":
		rule.Paused = 1
	case "off":
		rule.Paused = 2
	default:
		return fmt.Errorf("paused is %q; want on or off", l.Paused)
	}
	switch l.Withheld {
	case "":
	case "on":
		rule.Held = true
	default:
		return fmt.Errorf("withheld is %q; want on", l.Withheld)
	}
	return r.Sink.Rule(s, &rule)
}

func (w *Writer) writeRule(key string, value []byte) error {
	s, r, err := row.ParseRule(key, value)
	if err != nil {
		return err
	}
	if r.BlockedUntil <= w.Header.Moment {
		r.BlockedUntil = 0
	}
	if r.Ended = 0; r == (row.Rule{}) {
		return nil
	}
	return w.put(w.line.rule(s, &r))
}
