package doccheck

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRetell(t *testing.T) {
	text := "a\n```console\n$ x\nold\n$ y\n```\n<!-- wait: z -->\n```console\n$ w\n```\nb\n"
	var steps []Step
	retold := Retell(text, func(s Step) string { steps = append(steps, s); return s.Command + "!\n" })
	assert.Equal(t, []Step{{"x", "old\n", ""}, {"y", "", ""}, {"w", "", "z"}}, steps)
	assert.Equal(t, "a\n```console\n$ x\nx!\n$ y\ny!\n```\n<!-- wait: z -->\n```console\n$ w\nw!\n```\nb\n", retold)
	assert.Equal(t, Alike("a   1.5 s, 3\u202f456 in 20 ms token=AB"), Alike("a 12 min, 3 now token=XYZ"))
	assert.Equal(t, Alike("waiting 1\npriority 7  1 waiting\nrule: x\n"), Alike("waiting 20\nnext contact  now\nrule: x\n"))
	assert.Equal(t, Alike("a\n"), Alike("go: downloading golang.org/x/sys v0.1.0\na\n"))
	assert.NotEqual(t, Alike("a 1"), Alike("b 1"))
}
