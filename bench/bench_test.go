package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test be the child process that runs a scenario.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArg {
		os.Exit(childMain(os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// small makes every scenario take a moment.
var small = []string{"-urls", "20000", "-phase", "150ms", "-settle", "300ms", "-watch", "100ms", "-time", "600ms", "-workers", "8"}

// benched runs the program and reads its JSON.
func benched(t *testing.T, ctx context.Context, args ...string) (rep report, code int, stdout, stderr string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "out.json")
	dir := t.TempDir()
	var out, errs bytes.Buffer
	code = bench(ctx, append(append(slices.Clone(small), "-dir", dir, "-json", file), args...), &out, &errs)
	if text, err := os.ReadFile(file); err == nil {
		require.NoError(t, json.Unmarshal(text, &rep))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the folder is cleaned up")
	return rep, code, out.String(), errs.String()
}

func TestEveryScenarioRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("many processes")
	}
	t.Parallel()
	rep, code, stdout, stderr := benched(t, context.Background(), "-scenario", "all")
	require.Zero(t, code, "%s\n%s", stdout, stderr)
	require.Empty(t, rep.Failures)
	f := figures{}
	for _, m := range rep.Measures {
		require.NotContains(t, f, m.id(), "two measures of one name")
		f[m.id()] = m.Value
	}
	for _, s := range scenarios {
		require.Contains(t, stdout, "## "+s.name+"\n")
	}
	for _, l := range table {
		for _, g := range l.goals {
			if g.id != "" && (g.only == nil || g.only(rep.Config)) && !strings.HasPrefix(g.id, "longrun.") {
				require.Contains(t, f, g.id, "a figure of the table")
			}
		}
	}
	require.EqualValues(t, 20_000, f["ingest.urls"])
	require.InDelta(t, 71, f["ingest.url.bytes"], 3)
	require.Greater(t, f["ingest.add.rate"], 1000.)
	require.GreaterOrEqual(t, f["ingest.add.max"], f["ingest.add.p99"])
	require.GreaterOrEqual(t, f["resume.acknowledged"], 20_000.)
	require.Zero(t, f["resume.lost"])
	require.EqualValues(t, 10_000, f["wide.hosts"])
	require.EqualValues(t, 20_000, f["one-url-hosts.one-url-hosts.again.hosts"])
	require.EqualValues(t, 1, f["one-host.one-host.hosts"])
	require.Greater(t, f["policy.worst"], 90.)
	require.NotEmpty(t, rep.Series)
	for _, s := range rep.Series {
		require.NotEmpty(t, s.Points, s.Name)
	}
}

func TestDrainStopsWhenAsked(t *testing.T) {
	t.Parallel()
	rep, code, _, stderr := benched(t, context.Background(), "-scenario", "drain", "-drain-urls", "5000", "-hosts", "2000", "-sync")
	require.Zero(t, code, stderr)
	require.Equal(t, "not run", rep.Table[0].Verdict)
}

func TestInterruptedRunPrintsWhatThereIs(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(2*time.Second, cancel)
	begun := time.Now()
	rep, code, stdout, _ := benched(t, ctx, "-scenario", "longrun", "-time", "10m")
	require.Equal(t, 1, code)
	require.Less(t, time.Since(begun), time.Minute)
	require.Contains(t, stdout, "interrupted")
	require.Empty(t, rep.Failures)
	require.NotEmpty(t, rep.Measures)
}

func TestFaultsAreToldBeforeTheRun(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"all faults at once", []string{"-urls", "5", "-workers", "0", "-scenario", "ingest,nothing", "-budget", "much", "-dir", missing, "x"},
			[]string{"-urls is 5", "-workers is 0", `no "nothing"`, `-budget is "much"`, "-dir: ", `"x" is no flag`}},
		{"more hosts than URLs", []string{"-hosts", "30000"}, []string{"-hosts is 30000"}},
		{"a budget below the fixed parts", []string{"-budget", "20MiB"}, []string{"with -budget 20 MiB", "MemoryBudget is"}},
		{"a budget for fewer URLs", []string{"-urls", "100000000", "-hosts", "50000000", "-budget", "512MiB"}, []string{"-budget is 512 MiB", "need at least"}},
		{"no room", []string{"-urls", "2000000000"}, []string{"of disk are free"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, code, stdout, stderr := benched(t, context.Background(), c.args...)
			require.Equal(t, 2, code)
			require.Empty(t, stdout)
			for _, want := range c.want {
				require.Contains(t, stderr, want)
			}
		})
	}
	_, code, _, stderr := benched(t, context.Background(), "-h")
	require.Zero(t, code)
	require.Contains(t, stderr, "longrun")
}

// gzipped writes a list of URLs.
func gzipped(t *testing.T, lines ...string) string {
	name := filepath.Join(t.TempDir(), "list.gz")
	f, err := os.Create(name)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write([]byte(strings.Join(lines, "\n")))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
	return name
}

func TestListOfURLs(t *testing.T) {
	t.Parallel()
	lines := []string{"", "no url", "http://", "http://h0.example/0"}
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("http://h%d.example/%d", i%97, i))
	}
	name := gzipped(t, lines...)
	rep, code, stdout, stderr := benched(t, context.Background(), "-urls-file", name, "-urls", "0", "-scenario", "ingest,known,drain,longrun")
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, `line 2 "no url"`)
	require.Equal(t, listInfo{3004, 3000, 1, 3, rep.List.Faults}, *rep.List)
	require.Len(t, rep.List.Faults, 3)
	require.Contains(t, stdout, "3004 lines: 3000 URLs, 1 duplicates and 3 broken lines left out")
	require.Equal(t, 3000, rep.Config.URLs)

	t.Run("fewer URLs than wanted", func(t *testing.T) {
		_, code, _, stderr := benched(t, context.Background(), "-urls-file", name)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "-urls is 20000; the list has 3000")
	})
	t.Run("no gzip file", func(t *testing.T) {
		plain := filepath.Join(t.TempDir(), "plain")
		require.NoError(t, os.WriteFile(plain, []byte("http://a.example/\n"), 0o600))
		_, code, _, stderr := benched(t, context.Background(), "-urls-file", plain)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "is no gzip file")
	})
	t.Run("cut off", func(t *testing.T) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		cut := filepath.Join(t.TempDir(), "cut.gz")
		require.NoError(t, os.WriteFile(cut, text[:len(text)/2], 0o600))
		_, code, _, stderr := benched(t, context.Background(), "-urls-file", cut)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "after line ")
	})
	t.Run("no good line", func(t *testing.T) {
		_, code, _, stderr := benched(t, context.Background(), "-urls-file", gzipped(t, "x", "y"))
		require.Equal(t, 2, code)
		require.Contains(t, stderr, "has no good line")
	})
}
