package importance_test

import (
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/importance"
)

// riser is frontier.Riser.
type riser interface {
	frontier.Prioritizer
	Found(e frontier.Entry) int
	Rise(waiting frontier.Entry) (weight float64)
}

var _ riser = (*importance.Estimator)(nil)
