// This file turns what is known of a URL into the number of a front queue.

package frontier

// Prioritizer gives a URL its priority, 1 to Options.Priorities; the highest is
// the most urgent. It is called at Add, when a Done keeps the URL in the frontier, and
// when there was a hint of one that is scheduled (Entry.Hint), outside the frontier's lock, from any goroutine.
type Prioritizer interface {
	Priority(e Entry, h History) int
}

// PrioritizerFunc makes a function a Prioritizer.
type PrioritizerFunc func(e Entry, h History) int

// Priority calls the function.
func (f PrioritizerFunc) Priority(e Entry, h History) int { return f(e, h) }

// ByDepth gives seeds the priority levels, their links one less, and so on down
// to 1: breadth first. The default is ByDepth(Options.Priorities).
func ByDepth(levels int) Prioritizer {
	return withLevels{"ByDepth", levels, func(e Entry, _ History) int {
		return max(1, levels-max(0, e.Depth))
	}}
}

// ByWeight cuts the weights from 0 to top into equal steps, one for each of the
// levels; weights outside count as the nearest. NaN counts as 0.
func ByWeight(levels int, top float64) Prioritizer {
	return withLevels{"ByWeight", levels, func(e Entry, _ History) int {
		x := e.Weight / top * float64(levels)
		switch {
		case !(x > 0):
			return 1
		case x >= float64(levels):
			return levels
		}
		return 1 + int(x)
	}}
}

// Constant gives every URL the same priority: one front queue, FIFO.
func Constant(priority int) Prioritizer {
	return withLevels{"Constant", priority, func(Entry, History) int { return priority }}
}

// withLevels is a Prioritizer whose highest priority is known.
type withLevels struct {
	name   string
	levels int
	PrioritizerFunc
}
