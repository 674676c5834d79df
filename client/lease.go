// This file changes outstanding leases.

package client

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/unit"
)

// Extend moves a lease's deadline to d from now, as frontier.Frontier.Extend does.
func (c *Client) Extend(l *frontier.Lease, d time.Duration) error {
	if err := unit.Check("d", d, unit.Measured); err != nil {
		return fmt.Errorf("client: extend: %w", err)
	}
	x, err := c.onLease(*l, "extend", struct {
		Lease float64 `json:"lease_s"`
	}{d.Seconds()})
	if err == nil {
		l.Deadline = x.Deadline
	}
	return err
}

// Join puts a lease's host in a group before the group is contacted, as frontier.Frontier.Join does. If the
// frontier's hosts are divided over several parts, l gets another ID.
func (c *Client) Join(l *frontier.Lease, group string) error {
	x, err := c.onLease(*l, "join", struct {
		Group string `json:"group"`
	}{group})
	p, _ := errors.AsType[*ProblemError](err)
	switch {
	case err == nil:
		x.Due, x.LeasedAt = l.Due, l.LeasedAt
		*l = x
	case p != nil && p.Type == "group-busy":
		l.Group, err = group, frontier.ErrGroupBusy
	}
	return err
}

// HandBack gives back a lease's URL and returns a lease for a contact only, as frontier.Frontier.HandBack
// does.
func (c *Client) HandBack(l frontier.Lease) (frontier.Lease, error) {
	return c.onLease(l, "handback", struct{}{})
}
