// This file sets values of the program's in the model, and reads them all.

package model

import (
	"context"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func (m *model) Value(t *rapid.T) {
	key := rapid.SampledFrom([]string{"a", "a/1", "a/2", "b"}).Draw(t, "key")
	v := rapid.SampledFrom([][]byte{nil, {}, []byte("1"), []byte("22")}).Draw(t, "value")
	require.NoError(t, m.f.SetValue(context.Background(), key, v))
	if delete(m.values, key); v != nil {
		m.values[key] = string(v)
	}
	got := map[string]string{}
	stored, err := m.f.Values(context.Background(), "")
	require.NoError(t, err)
	for key, v := range stored {
		got[key] = string(v)
	}
	require.Equal(t, m.values, got)
}
