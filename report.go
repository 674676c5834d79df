// This file gives Stats the forms that logs and monitoring want. Every field has
// a key: its name in lower case with underscores. A field that is added later
// needs nothing more.

package frontier

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// LogValue implements slog.LogValuer: a group of all fields, under keys that do
// not change between versions.
func (s Stats) LogValue() slog.Value { return slog.GroupValue(fields(reflect.ValueOf(s))...) }

// LogValue implements slog.LogValuer: the number of durations, their mean, and
// quantiles as of Quantile.
func (h Histogram) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int64("count", h.Count),
		slog.Float64("mean_s", h.Mean().Seconds()),
		slog.Float64("p50_s", h.Quantile(0.5).Seconds()),
		slog.Float64("p90_s", h.Quantile(0.9).Seconds()),
		slog.Float64("p99_s", h.Quantile(0.99).Seconds()),
	)
}

// Var returns a variable for package expvar, which shows the present Stats as
// JSON with the keys of LogValue:
//
//	expvar.Publish("frontier", f.Var())
//
// It may be used from any goroutine, after Close too.
func (f *Frontier) Var() fmt.Stringer { return statsVar{f} }

type statsVar struct{ f *Frontier }

// String returns the Stats as JSON.
func (v statsVar) String() string { return string(appendJSON(nil, v.f.Stats().LogValue())) }

// fields returns the fields of a struct under their keys.
func fields(v reflect.Value) []slog.Attr {
	var out []slog.Attr
	for i := range v.NumField() {
		key := snake(v.Type().Field(i).Name)
		switch x := v.Field(i).Interface().(type) {
		case int64:
			out = append(out, slog.Int64(key, x))
		case float64:
			out = append(out, slog.Float64(key, x))
		case time.Duration:
			out = append(out, slog.Float64(key+"_s", x.Seconds()))
		case slog.LogValuer:
			out = append(out, slog.Attr{Key: key, Value: x.LogValue()})
		case [8]int64:
			var by []slog.Attr
			for r, n := range x {
				by = append(by, slog.Int64(strings.ReplaceAll(Result(r).String(), " ", "_"), n))
			}
			out = append(out, slog.Attr{Key: key, Value: slog.GroupValue(by...)})
		default:
			out = append(out, slog.Attr{Key: key, Value: compound(v.Field(i))})
		}
	}
	return out
}

// compound is a group of a struct's fields, or of a slice's elements counted from 1.
func compound(v reflect.Value) slog.Value {
	switch v.Kind() {
	case reflect.Struct:
		return slog.GroupValue(fields(v)...)
	case reflect.Slice:
		var out []slog.Attr
		for i := range v.Len() {
			x := slog.AnyValue(v.Index(i).Interface()).Resolve()
			out = append(out, slog.Attr{Key: strconv.Itoa(i + 1), Value: x})
		}
		return slog.GroupValue(out...)
	}
	return slog.AnyValue(v.Interface())
}

// snake turns HandedOut into handed_out.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

func appendJSON(b []byte, v slog.Value) []byte {
	if v.Kind() != slog.KindGroup {
		x, err := json.Marshal(v.Any())
		if err != nil { // a number that JSON has no word for
			return append(b, "null"...)
		}
		return append(b, x...)
	}
	b = append(b, '{')
	for i, a := range v.Group() {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strconv.AppendQuote(b, a.Key), ':')
		b = appendJSON(b, a.Value)
	}
	return append(b, '}')
}
