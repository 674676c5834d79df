// This file decides how a server with an empty folder begins.
//
// A member of a Raft group that has forgotten its votes must not vote again under its name: what a
// majority has acknowledged could be lost. So a server with an empty folder begins a fleet only with all
// others, when each says that it has not begun either. If the fleet has begun, the server takes part
// only if it was let in.

package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// beginsName is the file of a folder that begins with all others: they have all been empty at once.
// Once it has begun the file goes, so that a folder which lost the rest counts as empty.
const beginsName = "begins"

const (
	askAgain = 200 * time.Millisecond
	// AskTime is how long another server may take to say its stage.
	AskTime = 2 * time.Second
	// SayFirst is how long a server waits for others until it says who is missing.
	SayFirst = 5 * time.Second
	sayAgain = time.Minute
)

// Stage is how far a server has come.
type Stage int32

const (
	Away  Stage = iota // it does not answer
	Empty              // its folder is empty
	Ready              // it begins, as soon as all others do
	Begun
)

// Beginning is a server that has not begun.
type Beginning struct {
	*Options
	stage atomic.Int32
}

// Begin makes the stage of a server known whose folder is empty, or has the mark of an earlier attempt only.
func (o *Options) Begin() *Beginning {
	b := &Beginning{Options: o}
	b.stage.Store(int32(Empty))
	if o.Begins() {
		b.stage.Store(int32(Ready))
	}
	return b
}

// Begins reports whether the server may begin with the others: its folder was empty when all of theirs were, or it was
// let in.
func (o *Options) Begins() bool {
	_, err := os.Stat(filepath.Join(o.Dir, beginsName))
	return err == nil
}

// May notes that the server may begin.
func (o *Options) May() error {
	return durablefs.WriteFile(filepath.Join(o.Dir, beginsName), 0o600, func(io.Writer) error { return nil })
}

// Has notes that the server has begun.
func (o *Options) Has() error {
	if err := os.Remove(filepath.Join(o.Dir, beginsName)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Stage returns how far the server has come.
func (b *Beginning) Stage() Stage { return Stage(b.stage.Load()) }

// started is what a server was started for.
func (o *Options) started() string { return "-fleet " + o.Fleet + " -fleet-peers " + o.List("") }

// Says is what a server at a stage says to the others.
func (o *Options) Says(s Stage) []byte { return fmt.Appendf(nil, "%d %s", s, o.started()) }

// Hears returns the stage of a server that said this. No server begins with one that was started for something else.
func (o *Options) Hears(said []byte) (s Stage, err error) {
	number, as, _ := strings.Cut(string(said), " ")
	if _, err := fmt.Sscan(number, &s); err != nil || s < Away || s > Begun {
		return Away, fmt.Errorf("it says %.20q", said)
	}
	if s < Begun && as != o.started() {
		return Away, fmt.Errorf("it was started with %.1000s, and this machine with %s", as, o.started())
	}
	return s, nil
}

// Wait asks the others how far they have come, until it knows how to begin: with all of them, which is Ready, or, if
// the others have begun without this one, as one that was let in, which is Begun.
func (b *Beginning) Wait(ctx context.Context, ask func(ctx context.Context, node, address string) (Stage, error)) (Stage, error) {
	for say := time.Now().Add(SayFirst); ; {
		least, most, missing := Begun, Away, []string(nil)
		for node, address := range b.Peers {
			if node == b.Node {
				continue
			}
			s, err := ask(ctx, node, address)
			least, most = min(least, s), max(most, s)
			if err != nil {
				missing = append(missing, fmt.Sprintf("%s: %v", node, err))
			}
		}
		if b.Logger != nil && len(missing) > 0 && time.Now().After(say) {
			b.Logger.Warn("this folder is new, and waits for all machines of -fleet-peers", "error", strings.Join(missing, "; "))
			say = time.Now().Add(sayAgain)
		}
		switch mine := b.Stage(); {
		case mine == Ready && (most == Begun || least >= Ready):
			return Ready, nil
		case most == Begun:
			return Begun, nil
		case mine == Empty && least >= Empty:
			if err := b.May(); err != nil {
				return Away, err
			}
			b.stage.Store(int32(Ready))
		}
		select {
		case <-ctx.Done():
			return Away, fmt.Errorf("this folder is new, and not all of %s are there: %w", b.Names(), context.Cause(ctx))
		case <-time.After(askAgain):
		}
	}
}

// Stranger is the error of a server with an empty folder that was not let in.
func (o *Options) Stranger() error {
	return fmt.Errorf("the fleet has begun, and %s is empty: either it is not this machine's folder, or its disk was lost. A new folder takes part once another machine has let it in, where you type: frontier member -dir ITS-FOLDER %s=%s", o.Dir, o.Node, o.Peers[o.Node])
}
