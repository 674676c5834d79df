package leaseid

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestIDsStandForTheirLeases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		record, token := rapid.Uint32().Draw(t, "record"), rapid.Uint64().Draw(t, "token")
		id := Seal(record, token)
		require.Len(t, id, 16)
		tail := rapid.SampledFrom([]string{"", ".abc123"}).Draw(t, "tail")
		gotRecord, gotToken, gotTail, err := Open(id + tail)
		require.NoError(t, err)
		require.Equal(t, tail, gotTail)
		require.Equal(t, record, gotRecord)
		require.Equal(t, token, gotToken)
		require.NotEqual(t, id, Seal(record, token+1))
	})
	for _, bad := range []string{"", "short", strings.Repeat("a", 17), strings.Repeat("\n", 16), "aaaaaaaaaaaaaaa\n", "................", "." + strings.Repeat("a", 16)} {
		_, _, _, err := Open(bad)
		require.Error(t, err, bad)
	}
}
