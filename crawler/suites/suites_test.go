package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var suitesDir = flag.String("suites", os.Getenv("SUITES"), "folder with suites to run beside the packages' own")

// TestSuites runs the cases in the packages' testdata, and those of a requested folder. Deviations
// are listed with their reasons; nothing fails.
func TestSuites(t *testing.T) {
	folders := []string{""}
	if *suitesDir != "" {
		folders = append(folders, *suitesDir)
	}
	for _, dir := range folders {
		files, err := find(dir)
		require.NoError(t, err)
		for _, file := range files {
			t.Run(filepath.Base(file), func(t *testing.T) {
				r, err := run(file)
				require.NoError(t, err)
				var b bytes.Buffer
				r.print(&b, false)
				t.Log(b.String())
				assert.Zero(t, r.count(failed))
			})
		}
	}
}

// TestCounts holds the packages to the figures of their own suites: a case that
// begins to deviate is a change.
func TestCounts(t *testing.T) {
	want := map[string][verdicts]int{
		"robots_google.json":               {140, 0, 6, 1, 0},
		"robots_spectest_correctness.json": {139, 0, 6, 1, 0},
		"urltestdata_wpt.json":             {891, 0, 0, 0, 0},
		"toascii_wpt.json":                 {33, 0, 0, 0, 6},
		"mime_types_wpt.json":              {74, 0, 0, 0, 0},
		"content_types_wpt.json":           {16, 0, 0, 0, 0},
		"resolve_rfc3986.json":             {40, 0, 0, 0, 1},
		"urlnorm_crawlercommons.json":      {148, 0, 0, 0, 16},
		"psl.json":                         {77, 0, 0, 0, 0},
		"percent_encoding_wpt.json":        {15, 0, 0, 0, 1},
		"charset_html5lib.json":            {72, 0, 0, 0, 10},
		"srcset_wpt.json":                  {70, 0, 0, 0, 0},
		"sitemaps_crawlercommons.json":     {28, 0, 0, 0, 0},
	}
	files, err := find("")
	require.NoError(t, err)
	got := make(map[string][verdicts]int)
	for _, file := range files {
		r, err := run(file)
		require.NoError(t, err)
		var n [verdicts]int
		for v := range n {
			n[v] = r.count(verdict(v))
		}
		got[r.name] = n
	}
	assert.Equal(t, want, got)
}

// TestFailuresAreSeen gives each runner a case that cannot pass.
func TestFailuresAreSeen(t *testing.T) {
	for name, text := range map[string]string{
		"robots.json":           `{"cases":[{"id":"x","robots":"User-agent: *\nDisallow: /","agent":"a","url":"http://a.example/","allowed":true}]}`,
		"urltestdata.json":      `["comment",{"input":"http://a.example","base":null,"href":"http://a.example/wrong"}]`,
		"resolve.json":          `{"base":"http://a/b","cases":[{"ref":"c","out":"http://a/d"}]}`,
		"urlnorm.json":          `{"normalize":[{"in":"http://a.example/","out":"http://b.example/"}]}`,
		"toascii.json":          `[{"input":"\u00df","output":"ss"}]`,
		"mime.json":             `[{"input":"text/html;charset=gbk","output":"text/html","encoding":"UTF-8"}]`,
		"content.json":          `[{"input":["text/html","text/plain"],"mimeType":"text/html"}]`,
		"psl.json":              `{"cases":[{"host":"a.example.com","registrable":"a.example.com"}]}`,
		"percent_encoding.json": `[{"input":"a","output":{"utf-8":"b"}}]`,
		"charset.json":          `{"cases":[{"id":"x","data_b64":"YQ==","encoding":"koi8-r"}]}`,
		"sitemaps.json":         `{"cases":[{"url":"http://a.example/sitemap.xml","type":"XML","body":"<urlset><url><loc>/b</loc></url></urlset>","entries":[{"loc":"http://a.example/a"}]}]}`,
		"srcset.json":           `{"cases":[{"srcset":"data:,a","current_src":"data:,b"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
			r, err := run(file)
			require.NoError(t, err)
			var b bytes.Buffer
			r.print(&b, true)
			assert.Equal(t, 1, r.count(failed), b.String())
			assert.True(t, strings.HasPrefix(b.String(), "failed "), b.String())
		})
	}
}

func TestFilesThatCannotBeRun(t *testing.T) {
	dir := t.TempDir()
	_, err := find(dir)
	assert.ErrorContains(t, err, "no suites there")
	_, err = find(filepath.Join(dir, "missing"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	for name, text := range map[string]string{"robots-a.json": "{", "robots-b.json": "{}", "robots-c.json": `{"cases":[{"agent":"a","body":7}]}`, "robots-d.json": `{"cases":[{"agents":["a"]}]}`} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	files, err := find(dir)
	require.NoError(t, err)
	require.Len(t, files, 4)
	for _, file := range files {
		_, err := run(file)
		assert.Error(t, err, file)
	}
}
