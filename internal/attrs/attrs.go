// Package attrs makes log attributes and JSON of a struct of figures, and URLs without secrets. It owns no state.
package attrs

import (
	"encoding/json"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Group returns the fields of a struct under their keys: their names in lower case with underscores, and
// _s behind those of durations, which are in seconds. outcome names the elements of an array of eight.
func Group(v any, outcome func(i int) string) slog.Value {
	return slog.GroupValue(fields(reflect.ValueOf(v), outcome)...)
}

func fields(v reflect.Value, outcome func(i int) string) []slog.Attr {
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
				by = append(by, slog.Int64(strings.ReplaceAll(outcome(r), " ", "_"), n))
			}
			out = append(out, slog.Attr{Key: key, Value: slog.GroupValue(by...)})
		default:
			out = append(out, slog.Attr{Key: key, Value: compound(v.Field(i), outcome)})
		}
	}
	return out
}

// compound is a group of a struct's fields, or of a slice's elements counted from 1.
func compound(v reflect.Value, outcome func(i int) string) slog.Value {
	switch v.Kind() {
	case reflect.Struct:
		return slog.GroupValue(fields(v, outcome)...)
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

// AppendJSON appends a value, with groups as objects.
func AppendJSON(b []byte, v slog.Value) []byte {
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
		b = AppendJSON(b, a.Value)
	}
	return append(b, '}')
}

// URL is a URL as a log may have it: without its user and password.
func URL(url string) string {
	head, rest, ok := strings.Cut(url, "//")
	if !ok {
		return url
	}
	end := strings.IndexAny(rest, "/?#\\")
	if end < 0 {
		end = len(rest)
	}
	return head + "//" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}
