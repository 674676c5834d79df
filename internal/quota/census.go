package quota

// Census counts the waiting URLs of a domain. The caller iterates over the domain's hosts in the
// order of their keys, some at a time. Meanwhile the census counts changes of hosts that were
// already seen, and ignores those of others. The zero value has not begun.
type Census struct {
	urls     int64
	begun    bool
	complete bool   // otherwise only hosts up to cursor are counted
	cursor   string // key of a host
	round    int    // how often it has begun or ended
}

// Begun reports whether the counting has begun.
func (c *Census) Begun() bool { return c.begun }

// Complete reports whether all hosts are counted.
func (c *Census) Complete() bool { return c.complete }

// URLs is how many URLs are counted.
func (c *Census) URLs() int64 { return c.urls }

// Begin begins to count, from nothing. It returns the number of the round.
func (c *Census) Begin() (round int) {
	*c = Census{begun: true, round: c.round + 1}
	return c.round
}

// End ends the counting, and discards the count.
func (c *Census) End() {
	if c.begun {
		*c = Census{round: c.round + 1}
	}
}

// Saw counts the URLs of the next host, unless the round is over.
func (c *Census) Saw(round int, key string, urls int64) {
	if c.round == round {
		c.urls, c.cursor = c.urls+urls, key
	}
}

// SawAll records that all hosts were seen in a round.
func (c *Census) SawAll(round int) { c.complete = c.complete || c.round == round }

// Changed records that n more URLs of a host wait (or fewer, if negative). Once the census is
// complete it ignores the key.
func (c *Census) Changed(key string, n int64) {
	if c.begun && (c.complete || key <= c.cursor) {
		c.urls += n
	}
}
