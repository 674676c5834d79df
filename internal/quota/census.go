package quota

// Census counts the URLs that wait in a domain. The caller goes through the domain's
// hosts in the order of their keys, some at a time; meanwhile a change of a host that was
// seen counts, and one of others does not. The zero value has not begun.
type Census struct {
	urls     int64
	begun    bool
	complete bool   // else only hosts up to cursor are counted
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

// End ends the counting, and forgets what it has.
func (c *Census) End() {
	if c.begun {
		*c = Census{round: c.round + 1}
	}
}

// Saw counts the URLs of a host that comes after those that were seen, unless the round is
// over.
func (c *Census) Saw(round int, key string, urls int64) {
	if c.round == round {
		c.urls, c.cursor = c.urls+urls, key
	}
}

// SawAll says that in a round all hosts were seen.
func (c *Census) SawAll(round int) { c.complete = c.complete || c.round == round }

// Changed notes that n URLs more (or, negative, less) of a host wait. Once the census is
// complete it does not look at the key.
func (c *Census) Changed(key string, n int64) {
	if c.begun && (c.complete || key <= c.cursor) {
		c.urls += n
	}
}
