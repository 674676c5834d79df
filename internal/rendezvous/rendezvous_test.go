package rendezvous

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each node has its share, and when one leaves only its names move.
func TestNodes(t *testing.T) {
	const names = 30_000
	three, two := New("c", "a", "b", "a"), New("b", "a")
	counts := map[string]int{}
	for i := range names {
		name := fmt.Sprintf("host%d.example", i)
		owner := three.Owner(name)
		counts[owner]++
		if owner != "c" {
			assert.Equal(t, owner, two.Owner(name))
		}
	}
	for _, node := range []string{"a", "b", "c"} {
		assert.InDelta(t, names/3, counts[node], 400)
	}
	assert.Empty(t, New().Owner("a.example"))
}
