package importance_test

import (
	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/recrawl/adapter"
)

var (
	_ frontier.Riser     = (*importance.Estimator)(nil)
	_ crawler.Importance = (*importance.Estimator)(nil)
	_                    = adapter.Options{Weight: (*importance.Estimator)(nil).Weight}
)
