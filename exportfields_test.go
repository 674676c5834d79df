// This file tests that nothing is forgotten when something new is kept.

package frontier

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/dump"
	"github.com/seed-7440039f/frontier/internal/row"
	"github.com/seed-7440039f/frontier/internal/trouble"
	"github.com/stretchr/testify/require"
)

// filled gives each field of a struct, in turn, a value that is not zero, and
// calls fn with that.
func filled(t *testing.T, x any, fn func(field string, x any)) {
	typ := reflect.TypeOf(x)
	for i := range typ.NumField() {
		if typ.Field(i).Name == "Weight" && typ == reflect.TypeFor[Rule]() {
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
	case DelayPolicy:
		f.Set(reflect.ValueOf(FixedDelay(time.Second)))
		return
	case time.Time:
		f.Set(reflect.ValueOf(time.Now().Add(time.Hour).Truncate(time.Millisecond)))
		return
	case Switch:
		f.Set(reflect.ValueOf(On))
		return
	case PriorityMap:
		f.Set(reflect.ValueOf(PriorityMap{3: 5, 5: 1}))
		return
	}
	switch f.Kind() {
	case reflect.Int, reflect.Int64, reflect.Int32:
		f.SetInt(2)
	case reflect.Bool:
		f.SetBool(true)
	case reflect.Interface: // a DelayPolicy that is nil
		f.Set(reflect.ValueOf(FixedDelay(time.Second)))
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
func throughExport(t *testing.T, a *Frontier) *Frontier {
	var b bytes.Buffer
	require.NoError(t, a.Export(t.Context(), &b, ExportOptions{}))
	require.NoError(t, a.Close())
	x, err := Open(t.Context(), Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.Close()) })
	_, err = x.Import(context.Background(), &b, ImportOptions{})
	require.NoError(t, err)
	return x
}

// Whatever can be set of a scope or a crawl comes through an export.
func TestExportHasEverySetting(t *testing.T) {
	through := func(set func(*Frontier) error) *Frontier {
		a, err := Open(t.Context(), Options{})
		require.NoError(t, err)
		require.NoError(t, set(a))
		return throughExport(t, a)
	}
	filled(t, Rule{}, func(field string, r any) {
		want := r.(Rule)
		x := through(func(f *Frontier) error { return f.UpdateRule(Domain("example"), func(rule *Rule) { *rule = want }) })
		got, _ := x.Rule(Domain("example"))
		require.Equal(t, fmt.Sprintf("%+v", plain(want)), fmt.Sprintf("%+v", plain(got)), field)
	})
	for _, want := range []Rule{{Weight: 2}, {Paused: On}, {Limits: goldenLimits}} {
		x := through(func(f *Frontier) error { return f.UpdateRule(Crawl(5), func(r *Rule) { *r = want }) })
		got, _ := x.CrawlStats(5)
		require.Equal(t, want, got.Rule)
	}
}

func TestExportHasEverySettingOfGroups(t *testing.T) {
	filled(t, GroupSettings{}, func(field string, s any) {
		a, err := Open(t.Context(), Options{})
		require.NoError(t, err)
		require.NoError(t, a.SetGroup("g", s.(GroupSettings)))
		x := throughExport(t, a)
		got, _ := x.Group("g")
		require.Equal(t, s, got.Settings, field)
	})
}

// plain is a rule that can be compared as text.
func plain(r Rule) Rule {
	r.BlockedUntil = r.BlockedUntil.UTC().Round(0)
	return r
}

// What is kept of a host's failures is in its row.
func TestRowsHaveAllOfATrouble(t *testing.T) {
	notStored := map[string]bool{
		"Raised": true, "Counted": true, "good": true, "run": true, "short": true, // of leases that are out, or soon learned again
		"Listed": true, "Kept": true, // of what is under way
	}
	typ := reflect.TypeOf(trouble.State{})
	n := 0
	for i := range typ.NumField() {
		n += btoi(!notStored[typ.Field(i).Name])
	}
	require.Equal(t, reflect.TypeOf(row.Trouble{}).NumField(), n, "a new field must be stored, and exported, too")
}

// Rows and lines know all kinds of clocks, failures and results by their numbers.
func TestKindsInRows(t *testing.T) {
	require.EqualValues(t, row.Clocks, whys)
	require.EqualValues(t, row.Failures, failures)
	var names []string
	for k := Failure(0); int(k) < failures; k++ {
		names = append(names, k.String())
	}
	require.Equal(t, names, dump.Failures[:])
	names = nil
	for r := Visited; r <= Denied; r++ {
		names = append(names, r.String())
	}
	require.Equal(t, names, dump.Results[:])
}
