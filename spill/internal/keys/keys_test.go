package keys

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A change of these bytes needs a new Version and a way to read the old ones.
func TestFormatIsPinned(t *testing.T) {
	for want, key := range map[string][]byte{
		"0000000a4200000005":             Block(10, 5),
		"0000000a5400000005":             Timed(10, 5),
		"0000000a4800000005":             Head(10, 5),
		"0000000a4c00000000000000070002": Log(10, 7, 2),
		"ffffffff526b":                   Row("k"),
	} {
		assert.Equal(t, want, hex.EncodeToString(key))
	}
}
