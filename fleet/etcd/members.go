// This file changes who takes part.

package etcd

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Admit lets a node in whose server has an empty folder and is reached at an address, HOST:PORT: a new
// one, or in place of the one of this name, whose folder is lost and must never be used again. Others that were
// let in and have not started take part no more: the address may have been wrong. It waits until
// a majority of the others has been connected for some seconds, or ctx ends. It may be repeated.
func (e *Engine) Admit(ctx context.Context, node, address string) error {
	at := e.scheme + "://" + address
	all, err := e.client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("fleet: etcd: %w", err)
	}
	for _, m := range all.Members {
		switch same := slices.Contains(m.PeerURLs, at); {
		case same && m.Name == "":
			return nil // it was let in, and has not started yet
		case same && m.Name != node:
			return fmt.Errorf("fleet: etcd: %s is the address of node %s", address, m.Name)
		}
	}
	if _, err := e.Remove(ctx, node); err != nil {
		return err
	}
	err = again(ctx, func() error {
		_, err := e.client.MemberAdd(ctx, []string{at})
		return err
	})
	if err != nil {
		return fmt.Errorf("fleet: etcd: node %s was not let in yet; repeat it: %w", node, err)
	}
	return nil
}

// again repeats a change until it succeeds or ctx ends: etcd makes none while those that are left have not
// been connected for some seconds.
func again(ctx context.Context, change func() error) error {
	for {
		err := change()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Remove ends the part of a node, which may be gone already, and of all that were let in and have not started:
// those have no names yet. It waits as Admit does. The nodes never take part again with their folders.
func (e *Engine) Remove(ctx context.Context, node string) (found bool, err error) {
	all, err := e.client.MemberList(ctx)
	if err == nil {
		for _, m := range all.Members {
			if m.Name == node || m.Name == "" {
				found = true
				err = again(ctx, func() error {
					_, err := e.client.MemberRemove(ctx, m.ID)
					return err
				})
			}
		}
	}
	if err != nil {
		return found, fmt.Errorf("fleet: etcd: node %s was not removed: %w", node, err)
	}
	return found, nil
}
