// Package room decides which calls wait for memory while the disk is behind. It owns the waiting
// calls, and the state of the rounds that make room by moving URLs to disk.
//
// It has no lock: callers hold the frontier's. Only a Space's channel is received from without it.
package room

// Space is what calls that need room wait for.
type Space struct {
	Free chan struct{} // closed when there may be room
	full bool          // there is none: moving does not help
}

// Room decides who may have room. In the zero value no call waits and no round is in progress.
type Room struct {
	space   *Space // nil if no call waits
	moving  bool   // a round is in progress
	resting bool   // the last round failed, and the next one waits
	stuck   bool   // moving everything that can be moved did not free enough
}

// Ask requests need bytes when used of limit are taken. It returns nil if the caller may have them,
// or what to wait for before asking again, where last is what it waited for before; or refused, if
// waiting is useless.
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

// Freed lets the waiting calls ask again. If moving is stuck, and they still find no room, they
// stop waiting.
func (r *Room) Freed() {
	if r.space != nil {
		r.space.full = r.stuck
		close(r.space.Free)
		r.space = nil
	}
}

// Committed is Freed at the end of a commit, except during a round, which will call it.
func (r *Room) Committed() {
	if !r.moving {
		r.Freed()
	}
}

// Begins records that a round begins.
func (r *Room) Begins() { r.moving = true }

// NotNeeded records that no round is worth its cost: nothing is left to move. rest is what no round
// can free. If a commit is in progress, its end lets the waiting calls ask again.
func (r *Room) NotNeeded(rest, limit int64, committing bool) {
	if !committing {
		r.stuck = r.space != nil || rest > limit*8/10
		r.Freed()
	}
}

// Ended records that a round has ended: whether it failed or moved anything, and what no other can free.
func (r *Room) Ended(failed, moved bool, rest, limit int64, committing bool) {
	idle := !moved && !committing // another round would move as little
	r.moving, r.resting = false, failed
	r.stuck = failed || rest > limit*8/10 || idle && r.space != nil
	if moved || r.stuck { // otherwise they would find the same
		r.Freed()
	}
}

// Rested records that the next round may follow one that failed.
func (r *Room) Rested() { r.resting = false }
