package frontier

// MoveNow moves everything from the log to blocks and, with evict set, keeps as
// little as possible in memory.
func (f *Frontier) MoveNow(evict bool) error {
	if evict {
		f.mu.Lock()
		f.core.cfg.evictOver, f.core.cfg.ahead = 0, 0
		f.mu.Unlock()
	}
	return f.moveRound()
}

// ReadTimed reads what is due of the timed blocks.
func (f *Frontier) ReadTimed() {
	for f.readTimed(true) {
	}
}

// GroupOf returns the group that a host belongs to, or "".
func (f *Frontier) GroupOf(host string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	id := f.core.lookup(f.hostHash(host), host)
	if id == 0 || f.core.hosts.at(id).group == 0 {
		return ""
	}
	return f.core.groups.at(f.core.hosts.at(id).group).name
}
