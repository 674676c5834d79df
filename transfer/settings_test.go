// This file tests that an export keeps every setting.

package transfer_test

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/transfer"
)

// filled gives each field of a struct, in turn, a value that is not zero, and
// calls fn with that.
func filled(t *testing.T, x any, fn func(field string, x any)) {
	typ := reflect.TypeOf(x)
	for i := range typ.NumField() {
		if typ.Field(i).Name == "Weight" && typ == reflect.TypeFor[frontier.Rule]() {
			continue // of crawls
		}
		v := reflect.New(typ).Elem()
		fill(t, v.Field(i), typ.Field(i).Name)
		fn(typ.Field(i).Name, v.Interface())
	}
}

func fill(t *testing.T, f reflect.Value, name string) {
	switch f.Interface().(type) {
	case time.Duration:
		f.SetInt(int64(2 * time.Second))
		return
	case frontier.DelayPolicy:
		f.Set(reflect.ValueOf(frontier.FixedDelay(time.Second)))
		return
	case time.Time:
		f.Set(reflect.ValueOf(time.Now().Add(time.Hour).Truncate(time.Millisecond)))
		return
	case scope.Switch:
		f.Set(reflect.ValueOf(scope.On))
		return
	case frontier.PriorityMap:
		f.Set(reflect.ValueOf(frontier.PriorityMap{3: 5, 5: 1}))
		return
	}
	switch f.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32:
		f.SetInt(2)
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Interface: // a frontier.DelayPolicy that is nil
		f.Set(reflect.ValueOf(frontier.FixedDelay(time.Second)))
	case reflect.Pointer:
		f.Set(reflect.New(f.Type().Elem()))
		fill(t, f.Elem(), name)
	case reflect.Struct:
		for i := range f.NumField() {
			fill(t, f.Field(i), name)
		}
	default:
		require.Failf(t, "new kind of field", "%s is a %v: export it, and fill it here", name, f.Type())
	}
}

// throughExport closes a frontier and returns one that has its export.
func throughExport(t *testing.T, a *frontier.Frontier) *frontier.Frontier {
	var b bytes.Buffer
	require.NoError(t, transfer.Export(t.Context(), a, &b, transfer.ExportOptions{}))
	require.NoError(t, a.Close())
	x, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	_, err = transfer.Import(context.Background(), x, &b, transfer.ImportOptions{})
	require.NoError(t, err)
	return x
}

// Whatever can be set of a scope or a crawl comes through an export.
func TestExportHasEverySetting(t *testing.T) {
	through := func(set func(*frontier.Frontier) error) *frontier.Frontier {
		a, err := frontier.Open(t.Context(), frontier.Options{})
		require.NoError(t, err)
		require.NoError(t, set(a))
		return throughExport(t, a)
	}
	filled(t, frontier.Rule{}, func(field string, r any) {
		want := r.(frontier.Rule)
		x := through(func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.Domain("example"), func(rule *frontier.Rule) { *rule = want })
		})
		got, _ := x.Rule(scope.Domain("example"))
		require.Equal(t, fmt.Sprintf("%+v", plain(want)), fmt.Sprintf("%+v", plain(got)), field)
	})
	for _, want := range []frontier.Rule{{Weight: 2}, {Paused: scope.On}, {Limits: scope.Limits{Waiting: 10, Served: 20, Bytes: 1 << 40, Errors: 30, Depth: 4, Period: 36 * time.Hour}}} {
		x := through(func(f *frontier.Frontier) error {
			return f.UpdateRule(scope.Crawl(5), func(r *frontier.Rule) { *r = want })
		})
		got, _ := x.Rule(scope.Crawl(5))
		require.Equal(t, want, got)
	}
}

func TestExportHasEverySettingOfGroups(t *testing.T) {
	filled(t, frontier.GroupSettings{}, func(field string, s any) {
		a, err := frontier.Open(t.Context(), frontier.Options{})
		require.NoError(t, err)
		require.NoError(t, a.SetGroup("g", s.(frontier.GroupSettings)))
		x := throughExport(t, a)
		g, _ := inspect.New(x).Group("g")
		require.Equal(t, s, g.Settings, field)
	})
}

// plain is a rule that can be compared as text.
func plain(r frontier.Rule) frontier.Rule {
	r.BlockedUntil = r.BlockedUntil.UTC().Round(0)
	return r
}
