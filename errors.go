// This file declares every error that a caller may branch on.

package frontier

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/ledger"
	"github.com/seed-7440039f/frontier/storage"
)

// ErrClosed is returned by every call after Close, and by Next, TryNext, Take and
// Contact once Drain has begun.
var ErrClosed = storage.ErrClosed

// ErrExhausted is returned by Next, TryNext and Take when nothing is leased, no Add is committing, and
// nothing waiting or scheduled can become due by time alone. It is not sticky: after another Add, Next
// works again. With Options.KeepOpen, Next waits instead.
var ErrExhausted = errors.New("frontier: exhausted")

// HeldError is returned by Next, TryNext and Take instead of ErrExhausted when the URLs that are left
// can only be released by an operator: their hosts or crawls are paused, or have used up
// a limit that has no period. errors.Is(err, ErrExhausted) is true. The error is not
// sticky: after a Resume, Next works again.
type HeldError struct {
	Held int64 // URLs that wait
}

// Error implements error.
func (e *HeldError) Error() string {
	return fmt.Sprintf("frontier: exhausted: %d URLs are held by rules", e.Held)
}

// Is reports whether target is ErrExhausted.
func (e *HeldError) Is(target error) bool { return target == ErrExhausted }

// ErrNotDue is returned by TryNext when URLs are left but none may be fetched now. The
// time returned with it is when to ask again.
var ErrNotDue = errors.New("frontier: nothing due")

// NotDueError is returned by Take when URLs are left but none of those that it wants may
// be fetched now. errors.Is(err, ErrNotDue) is true.
type NotDueError struct {
	Next time.Time // when to ask again, as TryNext returns it; zero: only another call can change anything
}

// Error implements error.
func (e *NotDueError) Error() string {
	if e.Next.IsZero() {
		return ErrNotDue.Error()
	}
	return ErrNotDue.Error() + " until " + e.Next.Format(time.RFC3339)
}

// Is reports whether target is ErrNotDue.
func (e *NotDueError) Is(target error) bool { return target == ErrNotDue }

// ErrFull is returned by Add when Options.MemoryBudget is used up: without a Spill by
// URLs, with one by what must be in memory anyway (hosts with URLs, fingerprints,
// scheduled URLs). No entry of the call was admitted. A call whose entries take more than
// half of the memory for URLs, which is at most a quarter of the budget, is admitted only
// when few other URLs are in memory. The error then says so, and smaller calls may
// succeed. Done wraps ErrFull when it recorded the completion but refused the outlinks.
var ErrFull = errors.New("frontier: memory budget used up")

// ErrHints reports that a hint (Entry.Hint) was rejected because pending hints already
// use Options.MemoryBudget/64. Add and DoneContext return it inside an EntryError. The URL does
// not change; the hint may be given again later.
var ErrHints = errors.New("frontier: too many hints wait")

// ErrOutcome is wrapped by the error of a Done whose Outcome is faulty; the text says where.
var ErrOutcome = errors.New("frontier: outcome")

// ErrUnsettled is wrapped by the error of a call whose context, or that of CloseContext,
// ended before the Spill answered: it is not known whether the change is, or will be,
// committed. The lease of such a Done has ended: its URL is finished, or comes again.
var ErrUnsettled = ledger.ErrUnsettled

// ErrNotLeased is returned by Done, Extend, Join and HandBack for a lease that
// ended: by an earlier Done, by its deadline, or by a restart.
var ErrNotLeased = errors.New("frontier: not leased")

// ErrGroupBusy is returned by Join when the group may not be contacted now. Hand
// the lease back uncontacted: its host waits for the group from now on.
var ErrGroupBusy = errors.New("frontier: group busy")

// ErrUnknownHost is returned by Inspector.Host for a host about which nothing is known: none of its
// URLs is in the frontier, and it may be contacted at once.
var ErrUnknownHost = errors.New("frontier: unknown host")

// ErrInUse is returned by Open when the Spill belongs to another frontier, and
// by spill.Open when another process, or this one, has the folder open.
var ErrInUse = storage.ErrInUse

// ErrVersion is returned by spill.Open, spill.Repair and Open for a store, and by transfer.Import
// for an export, of a format that this version does not read. Nothing is damaged: the
// version that wrote it can read it.
var ErrVersion = storage.ErrVersion

// ErrReopen is wrapped by errors of a Spill that failed for good, as when the disk broke off in the
// middle of a write of its engine. Next, Take and Contact return it from then on: nothing is handed out
// until the store and the frontier are opened again. Nothing that was accepted is lost.
var ErrReopen = storage.ErrReopen

// EntryError reports an entry that Add could not admit, or an outlink that Done could not.
// The other entries of the call were admitted. Several are joined; errors.As finds the
// first, EntryErrors all. DoneContext returns those of bad outlinks apart from its error.
type EntryError struct {
	Index int    // position in the call's arguments
	URL   string // as given or normalized, shortened if very long
	Err   error  // what was wrong
}

// Error implements error.
func (e *EntryError) Error() string {
	return fmt.Sprintf("frontier: entry %d %q: %s", e.Index, e.URL, strings.TrimPrefix(e.Err.Error(), "frontier: "))
}

// Unwrap returns the cause.
func (e *EntryError) Unwrap() error { return e.Err }

// EntryErrors returns the entry errors joined in err, in order of their indexes.
func EntryErrors(err error) []*EntryError {
	var out []*EntryError
	var walk func(error)
	walk = func(err error) {
		switch e := err.(type) {
		case nil:
		case *EntryError:
			out = append(out, e)
		case interface{ Unwrap() []error }:
			for _, x := range e.Unwrap() {
				walk(x)
			}
		case interface{ Unwrap() error }:
			walk(e.Unwrap())
		}
	}
	walk(err)
	slices.SortStableFunc(out, func(a, b *EntryError) int { return cmp.Compare(a.Index, b.Index) })
	return out
}

// mistakeError is why an entry is refused if that is the program's mistake, not the web's.
type mistakeError struct {
	err  error
	code bool // of a function in Options: what it refuses may be a good link
}

// Error implements error.
func (e *mistakeError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *mistakeError) Unwrap() error { return e.err }

// mistakes joins those of refused that are mistakes of the program's.
func mistakes(refused []*EntryError) error {
	var errs []error
	for _, e := range refused {
		if _, ok := errors.AsType[*mistakeError](e); ok {
			errs = append(errs, e)
		}
	}
	return errors.Join(errs...)
}

// lostByCode takes those out of refused that a function in Options refused by mistake.
func lostByCode(refused []*EntryError) (rest []*EntryError, lost error) {
	var errs []error
	rest = slices.DeleteFunc(refused, func(e *EntryError) bool {
		m, ok := errors.AsType[*mistakeError](e)
		if ok = ok && m.code; ok {
			errs = append(errs, e)
		}
		return ok
	})
	return rest, errors.Join(errs...)
}

// PriorityError reports a Prioritizer that returned a priority outside 1..F. Add returns
// it inside an EntryError. From Done it means that the URL kept its priority.
type PriorityError struct {
	Got, Levels int
}

// Error implements error.
func (e *PriorityError) Error() string {
	return fmt.Sprintf("frontier: priority %d; want 1 to %d", e.Got, e.Levels)
}

// CorruptError reports a stored record or file that cannot be read: see storage.CorruptError.
type CorruptError = storage.CorruptError
