package fleet

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is written is read; nothing that a log may contain breaks the reader, and pieces make a change only if
// none is missing.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{2, 1, 1, 0, 1, 'x'}, []byte{3, 1, 2, 0, 1})
	f.Add([]byte{2, 1, 1, 0, 2, 'x'}, []byte{2, 1, 1, 1, 2, 'y'})
	f.Add([]byte{1, 9, 0, 0, 1}, []byte{})
	f.Add([]byte{2, '0', '0', 0, '0'}, []byte{2, '0', '0', 1, 2})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var pieces assembler
		for i, data := range [][]byte{a, b} {
			r, err := readRecord(data)
			if err == nil {
				again, err := readRecord(r.append(nil))
				require.NoError(t, err)
				require.Equal(t, r, again)
			}
			c, whole, err := pieces.add(uint64(i), bytes.Clone(data))
			if err == nil && whole && r.pieces > 1 {
				first, _ := readRecord(a)
				require.Equal(t, string(first.data)+string(r.data), string(c.data)) // no data may be nil
			}
		}
	})
}
