package faults_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier/internal/faults"
)

func TestListHasEveryFault(t *testing.T) {
	var l faults.List
	l.If(false, "never")
	l.Add(nil)
	assert.Empty(t, l)
	assert.NoError(t, l.Of("x: options"))
	inner := errors.New("inner")
	l.If(true, "N is %d; want >= 1", 0)
	l.Add(inner, nil)
	err := l.Of("x: options")
	assert.ErrorIs(t, err, inner)
	assert.EqualError(t, err, "x: options: N is 0; want >= 1\ninner")
}
