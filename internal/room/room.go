// Package room decides which calls wait for memory while the disk is behind. It owns who
// waits for room, and what is known of the rounds that make some by moving URLs to disk.
//
// No lock: callers hold the frontier's. Only a Space's channel is received from without.
package room

// Space is what calls wait for that need room.
type Space struct {
	Free chan struct{} // closed when there may be some
	full bool          // there is none: moving does not help
}

// Room says who may have room. In the zero value no call waits and no round is under way.
type Room struct {
	space   *Space // nil if no call waits
	moving  bool   // a round is under way
	resting bool   // the last round failed, and the next one waits
	stuck   bool   // moving all that can be moved did not free enough
}

// Ask asks for need bytes where used of limit are taken. It returns nil if the caller may
// have them, or what to wait for before asking again, with last being what it waited for
// before; or refused, if waiting is of no use.
func (r *Room) Ask(used, need, limit int64, last *Space) (wait *Space, refused bool) {
	if used+need <= limit*9/10 || need > limit/2 && used < limit/4 {
		r.stuck = r.resting
		return nil, false
	}
	if last != nil && last.full || r.stuck && !r.moving {
		return nil, true
	}
	if r.space == nil {
		r.space = &Space{Free: make(chan struct{})}
	}
	return r.space, false
}

// Waited reports whether a call waits for room.
func (r *Room) Waited() bool { return r.space != nil }

// Freed lets those that wait for room look again. If moving is stuck, and they still find
// none, they wait no more.
func (r *Room) Freed() {
	if r.space != nil {
		r.space.full = r.stuck
		close(r.space.Free)
		r.space = nil
	}
}

// Committed is Freed at the end of a commit, but not during a round, which will call it.
func (r *Room) Committed() {
	if !r.moving {
		r.Freed()
	}
}

// Begins says that a round begins.
func (r *Room) Begins() { r.moving = true }

// NotNeeded says that no round is worth its price: nothing is left to be moved. While a
// commit is under way its end lets those that wait look again.
func (r *Room) NotNeeded(used, limit int64, committing bool) {
	if !committing {
		r.stuck = r.space != nil || used > limit*8/10
		r.Freed()
	}
}

// Ended says that a round has ended, whether it failed and whether it moved anything.
func (r *Room) Ended(failed, moved bool, used, limit int64, committing bool) {
	idle := !moved && !committing // another round would move as little
	r.moving, r.resting = false, failed
	r.stuck = failed || used > limit*8/10 || idle && r.space != nil
	if moved || r.stuck { // else they would find the same
		r.Freed()
	}
}

// Rested says that the next round may come after one that failed.
func (r *Room) Rested() { r.resting = false }
