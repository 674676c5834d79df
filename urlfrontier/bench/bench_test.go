package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBadFlags(t *testing.T) {
	for _, c := range []struct{ want, flag, value string }{
		{"nothing to measure is named", "-only", "put,gvie"},
		{"-hosts must be at least 1", "-hosts", "0"},
		{"unexpected argument", "-urls=5", "more"},
	} {
		assert.ErrorContains(t, run(context.Background(), []string{c.flag, c.value}, &bytes.Buffer{}), c.want)
	}
	assert.ErrorContains(t, run(context.Background(), []string{"-pid", "1", "-start", "true"}, &bytes.Buffer{}), "exclude each other")
}
