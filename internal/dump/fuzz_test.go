package dump

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzLine reads lines of an export: none is longer than what was given.
func FuzzLine(f *testing.F) {
	f.Add([]byte("{\"url\":\"http://a.example/\"}\n{}\n"))
	f.Add([]byte("\r\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bufio.NewReader(bytes.NewReader(text))
		n := 0
		for {
			line, _, err := readLine(r, nil)
			if err != nil {
				return
			}
			n += len(line)
			require.LessOrEqual(t, n, len(text))
		}
	})
}
