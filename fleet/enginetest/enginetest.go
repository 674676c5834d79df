// Package enginetest has the tests that every engine passes whose servers live in the nodes.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/crossing"
	"github.com/seed-7440039f/frontier/fleet/peer"
)

// Engine is an engine on a server in this process.
type Engine interface {
	fleet.Engine
	crossing.Members
	Close() error
}

// Start starts an engine.
type Start func(ctx context.Context, o peer.Options) (Engine, error)

// StartOf returns the Start of engines of a type.
func StartOf[E Engine](start func(context.Context, peer.Options) (E, error)) Start {
	return func(ctx context.Context, o peer.Options) (Engine, error) {
		e, err := start(ctx, o)
		if err != nil {
			return nil, err // not an E that is nil
		}
		return e, nil
	}
}

// Test tests engines.
func Test(t *testing.T, start Start) {
	t.Run("contract", start.contract)
	t.Run("partitions", start.partitions)
	t.Run("kept", start.kept)
	t.Run("lost folder", start.lostFolder)
	t.Run("empty folder", start.emptyFolder)
	t.Run("one alone", start.oneAlone)
	t.Run("certificates", start.certificates)
	t.Run("addresses", start.addresses)
}

// TestShared tests engines on servers that are in no node.
func TestShared(t *testing.T, start Start) {
	t.Run("contract", start.contract)
	t.Run("partitions", start.partitions)
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same compares x with what is wanted.
func same(t *testing.T, want, x any) {
	t.Helper()
	if !reflect.DeepEqual(want, x) {
		t.Fatalf("it is %v; want %v", x, want)
	}
}

func conflicts(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, fleet.ErrConflict) {
		t.Fatalf("it is %v; want %v", err, fleet.ErrConflict)
	}
}

// says wants an error that contains a text.
func says(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Fatalf("the error is %v; want %q in it", err, text)
	}
}

// FreePort returns an unused address of loopback, below the ports that systems give to outgoing
// connections: servers get theirs again after a while.
func FreePort(t *testing.T) string {
	for range 1000 {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// within starts an engine, and waits for a minute at most.
func (start Start) within(t *testing.T, o peer.Options) (Engine, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return start(ctx, o)
}

// Trio is three engines on loopback. The one that was closed is nil.
type Trio struct {
	All     [3]Engine
	Options [3]peer.Options
	start   Start
}

// Three starts three engines, and closes those that are left at the end of a test.
func (start Start) Three(t *testing.T) *Trio {
	x := &Trio{start: start}
	peers := map[string]string{}
	for i := range x.All {
		peers[fmt.Sprint("n", i)] = FreePort(t)
	}
	dir := t.TempDir()
	for i := range x.All {
		x.Options[i] = peer.Options{Fleet: "test", Node: fmt.Sprint("n", i), Peers: peers, Dir: filepath.Join(dir, fmt.Sprint(i))}
	}
	x.open(t, 0, 1, 2)
	t.Cleanup(func() {
		for _, e := range x.All {
			if e != nil {
				ok(t, e.Close())
			}
		}
	})
	return x
}

// open starts some of the engines at once.
func (x *Trio) open(t *testing.T, some ...int) {
	t.Helper()
	var wg sync.WaitGroup
	errs := make([]error, len(x.All))
	for _, i := range some {
		wg.Go(func() { x.All[i], errs[i] = x.start.within(t, x.Options[i]) })
	}
	wg.Wait()
	ok(t, errors.Join(errs...))
}

// close ends some of the engines.
func (x *Trio) close(t *testing.T, some ...int) {
	t.Helper()
	for _, i := range some {
		ok(t, x.All[i].Close())
		x.All[i] = nil
	}
}
