// Package faults collects what is wrong with settings, so that their author learns of every
// fault at once. A List belongs to its caller.
package faults

import (
	"errors"
	"fmt"
)

// List is the faults found so far. The zero value is empty.
type List []error

// If adds a fault if there is one.
func (l *List) If(wrong bool, format string, args ...any) {
	if wrong {
		*l = append(*l, fmt.Errorf(format, args...))
	}
}

// Add adds faults that others found. Nil is none.
func (l *List) Add(errs ...error) {
	for _, err := range errs {
		if err != nil {
			*l = append(*l, err)
		}
	}
}

// Of returns all faults as one error that begins with whose they are, or nil.
func (l List) Of(what string) error {
	err := errors.Join(l...)
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
