// This file reads the published suites, whose inputs are seeds here. Package
// crawler/suites runs them.

package urlnorm

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func load(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

type wptCase struct {
	Input   string
	Base    *string
	Href    string
	Failure bool
}

func loadWPT(t testing.TB) []wptCase {
	t.Helper()
	var raw []json.RawMessage
	load(t, "urltestdata_wpt.json", &raw)
	var cases []wptCase
	for _, r := range raw {
		if r[0] == '{' { // the strings between are comments
			var c wptCase
			require.NoError(t, json.Unmarshal(r, &c))
			cases = append(cases, c)
		}
	}
	return cases
}
