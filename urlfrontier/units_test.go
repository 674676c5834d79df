package urlfrontier_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/fleet/route"
	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// TestUnits uses 10 ns in place of 10 s wherever a duration comes in.
func TestUnits(t *testing.T) {
	f, err := frontier.Open(t.Context(), urlfrontier.Frontier(frontier.Options{}))
	require.NoError(t, err)
	svc, err := serve.New(f, serve.Options{})
	require.NoError(t, err)
	for x := range reflect.TypeFor[urlfrontier.Options]().Fields() {
		if x.Type == reflect.TypeFor[time.Duration]() {
			var o urlfrontier.Options
			reflect.ValueOf(&o).Elem().FieldByIndex(x.Index).SetInt(10)
			_, err := urlfrontier.New(t.Context(), svc, o)
			assert.ErrorContains(t, err, x.Name+" is 10ns; want 0 or at least 1ms: is the unit missing?")
		}
	}
	s, err := urlfrontier.New(t.Context(), svc, urlfrontier.Options{Wait: -1})
	require.NoError(t, err)
	assert.ErrorContains(t, s.Stop(grpc.NewServer(), 10), "is the unit missing?")
	_, err = urlfrontier.NewRouter(urlfrontier.RouterOptions{Wait: 10, Away: 10})
	assert.ErrorContains(t, err, "Wait is 10ns; want 0 or at least 1ms: is the unit missing?")
	assert.ErrorContains(t, err, "Away is 10ns; want 0 or at least 1ms: is the unit missing?")
	division, err := route.New(route.Options{Parts: map[string][]string{"a": {"http://localhost:1"}}})
	require.NoError(t, err)
	r, err := urlfrontier.NewRouter(urlfrontier.RouterOptions{Division: division, Parts: map[string]urlfrontier.Dial{"a": nil}})
	require.NoError(t, err)
	assert.ErrorContains(t, r.Stop(grpc.NewServer(), 10), "is the unit missing?")
	assert.NoError(t, division.Close())
	assert.NoError(t, svc.Close())
	assert.NoError(t, f.Check())
	assert.NoError(t, f.Close())
}
