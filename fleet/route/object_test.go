package route

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzObject compares objects that were taken apart with what encoding/json reads.
func FuzzObject(f *testing.F) {
	for _, s := range []string{`{}`, ` { "a" : 1 , "b":[{"}":"]"}, "\"\\"] ,"c":"x\\","\u0061":null}`, `{"a":{"b":{}},"a":-1.5e3}`, `[]`, `{"a":1}{}`, `{"a":tru}`, "{\"a\":\"\\u00", "{\"a\":1}\n\t"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		o, err := objectOf(b)
		require.Equal(t, before, b)
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil || want == nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		got := map[string]json.RawMessage{}
		for _, m := range o {
			got[m.name] = m.value
		}
		require.Equal(t, len(want), len(got))
		for name, v := range want {
			require.JSONEq(t, string(v), string(got[name]))
		}
		again, err := objectOf(o.bytes())
		require.NoError(t, err)
		require.Equal(t, len(o), len(again))
	})
}
