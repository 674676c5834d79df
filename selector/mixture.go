// This file chooses among front queues by weights that may change while the frontier runs.

package selector

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/internal/faults"
)

// Mixture is a Selector that picks an available priority with a probability proportional to its
// weight. The weights may be changed at any time, from any goroutine. Use Mix to make one.
type Mixture struct {
	owned
	weights atomic.Pointer[[]float64]
	random  *rand.Rand // used by Select
}

// Mix returns a Mixture in which priority f has the weight weights[f-1], a non-negative number in
// any unit: Mix(seed, 1-p, p) takes priority 2 with probability p. A priority of weight 0 is picked
// only while no other is available; if there are several, the highest comes first. The same seed
// gives the same sequence. Open refuses weights that Set would refuse, and a number of weights
// other than the number of priorities.
func Mix(seed uint64, weights ...float64) *Mixture {
	m := &Mixture{random: random(seed)}
	m.store(weights)
	return m
}

// Set changes the weights from the next hand-out on. It returns an error and changes nothing if the
// number of weights differs from before, or if a weight is negative or not finite, or if all are 0.
func (m *Mixture) Set(weights ...float64) error {
	if err := checkWeights(weights, len(*m.weights.Load())); err != nil {
		return fmt.Errorf("selector: Mixture: %w", err)
	}
	m.store(weights)
	return nil
}

// Weights returns a copy of the weights.
func (m *Mixture) Weights() []float64 { return append([]float64(nil), *m.weights.Load()...) }

func (m *Mixture) store(weights []float64) {
	w := append([]float64(nil), weights...)
	m.weights.Store(&w)
}

// Select implements Selector.
func (m *Mixture) Select(available []int) int {
	weights := *m.weights.Load()
	most := 0.
	for _, p := range available {
		most = max(most, weights[p-1])
	}
	if most == 0 {
		return available[len(available)-1]
	}
	sum := 0.
	for _, p := range available {
		sum += weights[p-1] / most // their sum may overflow a float64
	}
	x, pick := m.random.Float64()*sum, 0
	for _, p := range available {
		w := weights[p-1] / most
		if w == 0 {
			continue
		}
		if pick = p; x < w {
			break
		}
		x -= w
	}
	return pick
}

// check returns an error if the weights do not fit levels priorities.
func (m *Mixture) check(levels int) error { return checkWeights(*m.weights.Load(), levels) }

func checkWeights(weights []float64, levels int) error {
	if len(weights) != levels {
		return fmt.Errorf("%d weights; want one for each of %d priorities", len(weights), levels)
	}
	var wrong faults.List
	sum := 0.
	for i, w := range weights {
		wrong.If(!(w >= 0) || math.IsInf(w, 1), "the weight of priority %d is %v; want a finite number >= 0", i+1, w)
		sum += w
	}
	wrong.If(len(wrong) == 0 && sum == 0, "all weights are 0; want one above")
	return errors.Join(wrong...)
}
