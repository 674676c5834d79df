package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier/console"
)

// What cannot be taken back is asked for: all of a crawl with its number of URLs.
func TestDeleteAsks(t *testing.T) {
	r := console.Result{Said: "this deletes 12 URLs", Count: 12}
	for _, x := range []struct {
		scope, answer string
		done          bool
	}{
		{"a.example", "yes\n", true}, {"a.example", "yes", true}, {"a.example", "y\n", false}, {"a.example", "", false},
		{"*", "yes\n", false}, {"*", "12\n", true},
	} {
		var asked bytes.Buffer
		err := confirm(strings.NewReader(x.answer), &asked, r, x.scope)
		assert.Equal(t, x.done, err == nil, "%+v: %v", x, err)
		assert.Contains(t, asked.String(), "this deletes 12 URLs. Nothing brings them back.")
	}
}
