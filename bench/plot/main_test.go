package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const results = `{"series": [
 {"scenario": "ingest", "name": "add", "points": [
  {"s": 1, "urls": 500000, "calls": {"add": [900, 5000, 21000]}, "anon_bytes": 9e7, "heap_bytes": 5e7, "frontier_bytes": 1e8, "disk_bytes": 4e7},
  {"s": 2, "urls": 990000, "calls": {"add": [950, 5100, 20000]}, "anon_bytes": 12e7, "heap_bytes": 7e7, "frontier_bytes": 1.2e8, "disk_bytes": 7e7}]},
 {"scenario": "resume", "name": "re<open>", "points": [{"s": 0.1, "urls": 0}]}]}`

func TestDrawsWhatWasMeasured(t *testing.T) {
	in, out := filepath.Join(t.TempDir(), "in.json"), filepath.Join(t.TempDir(), "out.svg")
	require.NoError(t, os.WriteFile(in, []byte(results), 0o600))
	var stderr strings.Builder
	require.Zero(t, run([]string{"-o", out, in}, &stderr), stderr.String())
	svg, err := os.ReadFile(out)
	require.NoError(t, err)
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		_, err := d.Token()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
	}
	require.NotContains(t, string(svg), "NaN")
	points := regexp.MustCompile(`[ML]([\d.]+) ([\d.]+)`).FindAllStringSubmatch(string(svg), -1)
	require.Greater(t, len(points), 14)
	for _, p := range points {
		x, err := strconv.ParseFloat(p[1], 64)
		require.NoError(t, err)
		y, err := strconv.ParseFloat(p[2], 64)
		require.NoError(t, err)
		require.LessOrEqual(t, x, 2.*panelWidth)
		require.LessOrEqual(t, y, 2.*panelHeight)
	}
	for _, want := range []string{"ingest add: latency", "add p99", "anonymous memory", "Stats.MemoryBytes", "re&lt;open&gt;", "nothing was measured"} {
		require.Contains(t, string(svg), want)
	}
	require.Zero(t, run([]string{"-o", out, "-series", "ingest.add", in}, &stderr))
	svg, err = os.ReadFile(out)
	require.NoError(t, err)
	require.NotContains(t, string(svg), "re&lt;open&gt;")
}

func TestSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in.json")
	require.NoError(t, os.WriteFile(in, []byte(results), 0o600))
	empty := filepath.Join(dir, "empty.json")
	require.NoError(t, os.WriteFile(empty, []byte("{}"), 0o600))
	for want, args := range map[string][]string{
		"want 1":              {},
		"no such file":        {filepath.Join(dir, "none.json")},
		"no series of that":   {"-series", "drain.drain", in},
		"has no series":       {empty},
		"flag provided but":   {"-x"},
		"ingest.add, resume.": {"-series", "y", in},
	} {
		var stderr strings.Builder
		require.NotZero(t, run(append([]string{"-o", filepath.Join(dir, "out.svg")}, args...), &stderr))
		require.Contains(t, stderr.String(), want)
	}
}

func TestTicksAreRound(t *testing.T) {
	require.Equal(t, []float64{0, 2, 4, 6, 8, 10}, axis{high: 10}.ticks())
	require.Equal(t, []float64{1, 10, 100}, axis{low: 1, high: 100, logarithmic: true}.ticks())
	require.LessOrEqual(t, len(axis{high: 97}.ticks()), 11)
}
