package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The picture is XML without scripts, in which each line has its times and its colours.
func TestDraw(t *testing.T) {
	svg := draw([]frame{
		{0, "$ \n", "$ a <b\n"},
		{time.Second, "$ go\n\x1b[1m\x1b[32m● running\x1b[0m  1\n", "$ a <b\n"},
		{2 * time.Second, "$ go\n", "$ a <b\n"},
	})
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err, svg)
		if e, ok := token.(xml.StartElement); ok {
			assert.NotEqual(t, "script", e.Name.Local)
		}
	}
	assert.Contains(t, svg, ">$ a &lt;b</text>")
	assert.Equal(t, 1, strings.Count(svg, "&lt;b"), "a line that stays stands there once")
	assert.Contains(t, svg, `<tspan class="g b">● running</tspan>  1`)
	assert.Contains(t, svg, "{0%{visibility:hidden}14.29%{visibility:visible}28.57%{visibility:hidden}}", "the second of seven seconds")
	assert.Contains(t, svg, ".a{animation-duration:7.0s")
}
