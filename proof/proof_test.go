package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/stretchr/testify/require"
)

func TestEachKindHasTests(t *testing.T) {
	names := map[string]bool{}
	for _, k := range kinds() {
		require.False(t, names[k.name], "two kinds are called %s", k.name)
		names[k.name] = true
		require.NotEmpty(t, k.what)
		if k.program != "" {
			require.FileExists(t, filepath.Join("..", k.program, "main.go"))
			continue
		}
		files, err := filepath.Glob(filepath.Join("..", k.pkg, "*_test.go"))
		require.NoError(t, err)
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllSubmatch(text, -1) {
				found = found || regexp.MustCompile(k.run).Match(m[1])
			}
		}
		require.True(t, found, "no test in %s matches %s", k.pkg, k.run)
	}
}

func TestArguments(t *testing.T) {
	all := []kind{{name: "a"}, {name: "b"}, {name: "c"}}
	for _, c := range []struct {
		args []string
		want []string // names of kinds; nil: an error
		seed uint64
	}{
		{nil, []string{"a", "b", "c"}, 0},
		{[]string{"-only", "c,a", "-seed", "5"}, []string{"c", "a"}, 5},
		{[]string{"-replay", "b", "17"}, []string{"b"}, 17},
		{[]string{"-replay", "b"}, nil, 0},
		{[]string{"-replay", "b", "0"}, nil, 0},
		{[]string{"-replay", "d", "17"}, nil, 0},
		{[]string{"-only", "d"}, nil, 0},
		{[]string{"a"}, nil, 0},
	} {
		s, err := parse(c.args, all, io.Discard)
		if c.want == nil {
			require.Error(t, err, "%q", c.args)
			continue
		}
		require.NoError(t, err)
		var got []string
		for _, k := range s.kinds {
			got = append(got, k.name)
		}
		require.Equal(t, c.want, got)
		if c.seed != 0 {
			require.Equal(t, c.seed, s.seed)
		} else {
			require.NotZero(t, s.seed)
		}
	}
}

var (
	faulty     = flag.Bool("proof.faulty", false, "be a test that fails")
	faultySeed = flag.Uint64("proof.seed", 0, "its seed")
)

func TestFaulty(t *testing.T) {
	n := trycount.Of(t)
	n.Tried(2)
	if *faulty {
		n.Lost(3)
		t.Errorf("lost with %d", *faultySeed)
	}
}

// A fault is counted, shown, and found again with the command that is printed.
func TestFaultsAreReported(t *testing.T) {
	if testing.Short() {
		t.Skip("builds tests")
	}
	var out bytes.Buffer
	w, err := newWorkshop(false, &out)
	require.NoError(t, err)
	defer w.close()
	good := kind{name: "good", what: "well", pkg: "proof", run: "^TestFaulty$", long: []string{"-proof.faulty"}}
	bad := kind{name: "bad", what: "badly", pkg: "proof", run: "^TestFaulty$", seed: "proof.seed", ci: good.long, long: good.long}
	require.EqualError(t, w.runAll(t.Context(), settings{seed: 1, kinds: []kind{good, bad}}), "1 rounds failed")
	require.Contains(t, out.String(), "| `good` | well | 2 | - | 0 | 0 | 0 |\n| `bad` | badly | 2 | - | 3 | 0 | 0 |\n")
	m := regexp.MustCompile(`lost with (\d+)\n(?s:.*)again: go run ./proof -replay bad (\d+)\n`).FindStringSubmatch(out.String())
	require.NotNil(t, m, out.String())
	require.Equal(t, m[1], m[2])

	out.Reset()
	require.Error(t, w.replay(t.Context(), bad, 77))
	require.Contains(t, out.String(), "lost with 77\n")
	require.Error(t, w.runAll(t.Context(), settings{kinds: []kind{{name: "empty", pkg: "proof", run: "^TestArguments$"}}}), "nothing was tried")
}
