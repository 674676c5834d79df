// Package unit checks the durations that a program sets. A number without its unit counts
// nanoseconds: 10 in place of 10*time.Second is 10 ns. No setting is meant to be as short as that, so
// such a number is an error. The package has no state.
package unit

import (
	"fmt"
	"reflect"
	"time"
)

// Least is the shortest setting. Measured is the shortest of what a program may reckon from two
// times, such as the rest of a wait: it may be short, but is no count of seconds.
const (
	Least    = time.Millisecond
	Measured = time.Microsecond
)

// Missing reports whether d is so short that it must be a number without its unit.
func Missing(d, least time.Duration) bool { return d > 0 && d < least }

// Check returns what is wrong with a duration of the given name that is 0, or at least as long as least.
func Check(name string, d, least time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("%s is %v; want 0 or at least %v", name, d, least)
	case Missing(d, least):
		return fmt.Errorf("%s is %v; want 0 or at least %v: is the unit missing?", name, d, least)
	}
	return nil
}

// CheckAll is Check for all exported durations of a struct, or of the one it points to. The names
// begin with prefix.
func CheckAll(prefix string, options any) (errs []error) {
	for f, v := range reflect.Indirect(reflect.ValueOf(options)).Fields() {
		if !f.IsExported() || f.Type != reflect.TypeFor[time.Duration]() {
			continue
		}
		if err := Check(prefix+f.Name, time.Duration(v.Int()), Least); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}
