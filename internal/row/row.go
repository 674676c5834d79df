// Package row encodes the small values that a frontier stores by name: its data about hosts and groups,
// an operator's settings, and what else must survive a crash. It owns no state and takes no lock.
//
// Each kind of row is a struct with a method Row and a function that parses it. A zero field takes
// no space. A row without content has no value: the store deletes it.
package row

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/seed-7440039f/frontier/internal/rule"
	"github.com/seed-7440039f/frontier/storage"
)

// Version is the version of all rows and of the bodies of URLs. It changes when their format
// changes in a way that an older program must not ignore.
const Version = 2

// What the keys of rows begin with.
const (
	MetaKey     = "m"              // the whole key
	HostKey     = "h:"             // a host key follows
	GroupKey    = "g:"             // a group's name
	RuleKey     = "r:"             // the key of a scope's rule
	CrawlKey    = "c:"             // a crawl's number, 4 bytes big endian
	UsageKey    = "u:"             // "r" and the key of a scope's rule, or "c" and a crawl's number
	DeletionKey = "e:"             // a deletion's number, 8 bytes big endian
	ForgetKey   = "f:"             // "a", or "c" and a crawl's number; and the key of a scope's rule
	OutdatedKey = "x:"             // a mark
	HintKey     = "i:"             // a mark
	AgainKey    = "a:"             // a record's number, 8 bytes big endian
	ValueKey    = "v:"             // a key of the program's
	SumKey      = "n:"             // a crawl's number, 4 bytes big endian; or nothing: the counts are right
	CountKey    = storage.ManyRows // a crawl's number, 4 bytes big endian, and a host key with its labels reversed
)

// Limits of the values in rows.
const (
	MaxDelay       = 30 * 24 * time.Hour        // of delay policies
	MaxCrawlDelay  = 24 * 24 * time.Hour        // its milliseconds fit 31 bits
	MaxPeriod      = 100 * 366 * 24 * time.Hour // of limits
	MaxConcurrency = 1024
	MaxPriorities  = 64
	MaxWeight      = 1000 // of a crawl
	MaxFails       = 10_000
	MaxRelapses    = 6
	Clocks         = 7 // values of Host.Why
	Failures       = 7 // values of Trouble.Failure
	maxName        = 255
)

// ErrMalformed is the cause of the *storage.CorruptError for a row that cannot be read.
var ErrMalformed = errors.New("malformed row")

// Malformed reports that the row with a key cannot be read.
func Malformed(key string) error { return &storage.CorruptError{Key: []byte(key), Err: ErrMalformed} }

// named adds the row to an error. A row of another version is not damaged.
func named(key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, storage.ErrVersion):
		return fmt.Errorf("row %q: %w", key, err)
	}
	return &storage.CorruptError{Key: []byte(key), Err: err}
}

// Scope is all hosts, or the hosts of a domain, or one host.
type Scope struct {
	Name   string
	Domain bool
	Named  bool // of a domain or host
}

// String returns the host key, the domain's name behind "*.", or "*".
func (s Scope) String() string {
	switch {
	case !s.Named:
		return "*"
	case s.Domain:
		return "*." + s.Name
	}
	return s.Name
}

// Host returns the key of the host that a scope is of, or "".
func (s Scope) Host() string {
	if s.Domain {
		return ""
	}
	return s.Name
}

// Check returns an error if a scope's name is invalid.
func (s Scope) Check() error {
	if s.Named && (len(s.Name) < 1 || len(s.Name) > maxName) {
		return fmt.Errorf("scope name has %d bytes; want 1 to %d", len(s.Name), maxName)
	}
	return nil
}

// Key is the key of the scope's rule.
func (s Scope) Key() string {
	switch {
	case !s.Named:
		return rule.All
	case s.Domain:
		return rule.Domain(s.Name)
	}
	return rule.Host(s.Name)
}

// Order is the scope's place among hosts in domain order. A domain's ends with a dot, so it
// is the prefix of the places of what lies under it.
func (s Scope) Order() string {
	k := hostkey.Reversed(s.Name)
	if s.Domain {
		return k + "."
	}
	return k
}

// Contains reports whether a host is in the scope.
func (s Scope) Contains(host string) bool {
	return s == (Scope{}) || host == s.Name || s.Domain && strings.HasPrefix(hostkey.Reversed(host), s.Order())
}

// ScopeOf is the inverse of Key.
func ScopeOf(key string) (Scope, error) {
	if key == rule.All {
		return Scope{}, nil
	}
	name, domain, ok := rule.Parse(key)
	if !ok {
		return Scope{}, ErrMalformed
	}
	s := Scope{Name: name, Domain: domain, Named: true}
	return s, s.Check()
}

// CheckGroup returns an error if a group's name is invalid.
func CheckGroup(name string) error {
	if len(name) < 1 || len(name) > maxName {
		return fmt.Errorf("group name has %d bytes; want 1 to %d", len(name), maxName)
	}
	return nil
}
