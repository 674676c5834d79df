// This file tests that nothing is forgotten when something new is kept.

package frontier

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// filled gives each field of a struct, in turn, a value that is not zero, and
// calls fn with that.
func filled(t *testing.T, x any, fn func(field string, x any)) {
	typ := reflect.TypeOf(x)
	for i := range typ.NumField() {
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
	case Priorities:
		f.Set(reflect.ValueOf(Priorities{2: 5, 4: 1}))
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
		x := through(func(f *Frontier) error { return f.SetRule(Domain("example"), want) })
		got, _ := x.Rule(Domain("example"))
		require.Equal(t, fmt.Sprintf("%+v", plain(want)), fmt.Sprintf("%+v", plain(got)), field)
	})
	filled(t, CrawlSettings{}, func(field string, s any) {
		want := s.(CrawlSettings)
		x := through(func(f *Frontier) error { return f.SetCrawl(5, want) })
		got, _ := x.CrawlStats(5)
		want.Weight = max(1, want.Weight)
		require.Equal(t, want, got.Settings, field)
	})
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

// Whatever is known of a host is in its line, and comes back from it.
func TestExportHasAllOfAHost(t *testing.T) {
	check := func(field string, want hostState) {
		var l lineWriter
		line := bytes.TrimSpace(l.host([]byte("x.example"), &want))
		var got exportLine
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&got), "%s: %s", field, line)
		s, err := got.hostState()
		require.NoError(t, err)
		require.Equal(t, want, s, "%s: %s", field, line)
	}
	for field, s := range map[string]hostState{
		"due": {due: 1e12, why: whyRetryAfter}, "crawlDelay": {crawlDelay: 1500}, "group": {group: "g\xff"}, "assigned": {group: "g", assigned: true},
		"used": {used: usageState{1e12, 3, 4, 5}},
	} {
		check(field, s)
	}
	typ := reflect.TypeOf(trouble{})
	for i := range typ.NumField() {
		s := hostState{quiet: 1e12, free: 1e12, trouble: trouble{step: 1}}
		switch t := &s.trouble; typ.Field(i).Name {
		case "raised", "counted", "good", "run", "short": // of leases that are out, or soon learned again
		case "quiet", "free": // hostState has them
		case "listed", "kept": // of what is under way
		case "usual":
			t.usual = 3
		case "kind":
			t.kind = FailureTooMany
		case "fails":
			t.fails = 3
		case "lanes":
			t.lanes = 3
		case "step":
			t.step = 3
		case "from":
			t.from = 3
		case "search":
			t.search = 3
		case "relapses":
			t.relapses = 3
		case "eased":
			t.eased = true
		case "probes":
			t.probes = 3
		default:
			panic("new field of trouble, to be exported: " + typ.Field(i).Name)
		}
		check(typ.Field(i).Name, s)
	}
	require.Equal(t, 9, reflect.TypeOf(hostState{}).NumField(), "a new field must be exported, too")
}
