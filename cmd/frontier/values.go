// This file defines types of flags that package flag lacks.

package main

import (
	"errors"
	"strconv"
	"strings"
)

// list is a flag of comma-separated values; a repeated flag adds to it.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds the values of s.
func (l *list) Set(s string) error {
	before := len(*l)
	for x := range strings.SplitSeq(s, ",") {
		if x = strings.TrimSpace(x); x != "" {
			*l = append(*l, x)
		}
	}
	if s != "" && len(*l) == before {
		return errors.New("want values, with commas between them")
	}
	return nil
}

// repeated is a flag that may be repeated.
type repeated []string

func (r *repeated) String() string { return strings.Join(*r, " ") }

// Set adds s.
func (r *repeated) Set(s string) error {
	*r = append(*r, s)
	return nil
}

// byteSize is a flag of a number of bytes.
type byteSize int64

func (b *byteSize) set(n int64) *byteSize { *b = byteSize(n); return b }

func (b *byteSize) String() string {
	for _, u := range []struct {
		shift int
		name  string
	}{{30, "G"}, {20, "M"}, {10, "k"}} {
		if *b != 0 && *b&(1<<u.shift-1) == 0 {
			return strconv.FormatInt(int64(*b)>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(*b), 10)
}

func (b *byteSize) Set(s string) error {
	shift := 0
	if i := strings.IndexAny(s, "kKmMgG"); i > 0 && i == len(s)-1 {
		shift = 10 + 10*strings.Index("kmg", strings.ToLower(s[i:]))
		s = s[:i]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > 1<<62>>shift {
		return errors.New("want a number of bytes, k, M or G may follow")
	}
	*b = byteSize(n << shift)
	return nil
}
