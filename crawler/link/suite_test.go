// This file runs the published suites.

package link

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func load(t testing.TB, name string, into any) {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, into))
}

func TestCharsetSuite(t *testing.T) {
	var suite struct {
		Cases []struct {
			ID       string
			Data     []byte `json:"data_b64"`
			Encoding string
		}
	}
	load(t, "charset_html5lib.json", &suite)
	passed := 0
	for _, c := range suite.Cases {
		if got := Charset(c.Data, ""); strings.EqualFold(got, c.Encoding) {
			passed++
		} else {
			t.Logf("%s: %s, want %s", c.ID, got, c.Encoding)
		}
	}
	t.Logf("%d of %d", passed, len(suite.Cases))
	// The others need scripts to run or more than the 1,024 bytes of the standard.
	assert.GreaterOrEqual(t, passed, 72)
}

func TestSrcsetSuite(t *testing.T) {
	var suite struct {
		Cases []struct {
			Srcset string
			Want   string `json:"current_src"`
		}
	}
	load(t, "srcset_wpt.json", &suite)
	for _, c := range suite.Cases {
		var got []string
		for u := range srcset([]byte(c.Srcset)) {
			got = append(got, string(u))
		}
		if c.Want == "" {
			assert.Empty(t, got, "%q", c.Srcset)
		} else {
			assert.Contains(t, got, c.Want, "%q", c.Srcset)
		}
	}
}
