package main

import (
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// The list follows the code: each entry can still be applied, and there are tests that should
// notice.
func TestMutationsApply(t *testing.T) {
	all, err := readList(listed)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(all), 60)
	tests := map[string][]string{} // by package
	for _, m := range all {
		text, err := m.apply(root)
		if err != nil {
			t.Error(err)
			continue
		}
		now, err := os.ReadFile(filepath.Join(root, m.file))
		require.NoError(t, err)
		require.NotEqual(t, string(now), string(text), "%s changes nothing", m.name)
		for _, x := range m.tests {
			if tests[x.pkg] == nil {
				tests[x.pkg] = testsOf(t, x.pkg)
			}
			require.True(t, slices.ContainsFunc(tests[x.pkg], regexp.MustCompile(x.pattern).MatchString), "%s: no test in %s matches %s", m.name, x.pkg, x.pattern)
		}
	}
}

var build = flag.Bool("frontier.build", false, "check the types of the program that has all mutations")

// All of them go into one program, which the compiler would take.
func TestGraftsAreGo(t *testing.T) {
	if !*build {
		t.Skip("checks changed copies of most packages, for half a minute: -frontier.build")
	}
	all, err := readList(listed)
	require.NoError(t, err)
	b, err := newBench(t.Context(), all)
	require.NoError(t, err)
	defer b.close()
	var pkgs []string
	for _, m := range all {
		pkgs = append(pkgs, "./"+filepath.Dir(m.file))
	}
	slices.Sort(pkgs)
	args := []string{"run", "./internal/typecheck", "-overlay", filepath.Join(b.dir, "overlay.json")}
	cmd := exec.CommandContext(t.Context(), "go", append(args, slices.Compact(pkgs)...)...)
	cmd.Dir = b.root
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
}

func TestGraft(t *testing.T) {
	g, err := newGrafted([]byte("package x\n\n// f is.\nfunc (*t) f(_ int, xs ...string) error { return one }\n\nfunc g(int) { one() }\n"))
	require.NoError(t, err)
	require.NoError(t, g.add(1, []byte("package x\n\n// f is.\nfunc (*t) f(_ int, xs ...string) error { return two }\n\nfunc g(int) { one() }\n")))
	require.NoError(t, g.add(2, []byte("package x\n\n// f is.\nfunc (*t) f(_ int, xs ...string) error { return one }\n\nfunc g(int) {}\n")))
	require.Error(t, g.add(3, []byte("package x\n\nfunc (*t) f(_ int, xs ...string) error { return two }\n\nfunc g(int) {}\n")), "two functions change")
	require.Error(t, g.add(3, g.old), "none changes")
	text, err := g.text()
	require.NoError(t, err)
	require.Equal(t, `package x

// f is.
func (argument0 *t) f(argument1 int, xs ...string) error {
	if mutationInForce == 1 {
		return argument0.fMutation1(argument1, xs...)
	}
	return one
}

func g(argument0 int) {
	if mutationInForce == 2 {
		gMutation2(argument0)
		return
	}
	one()
}

func (*t) fMutation1(_ int, xs ...string) error { return two }

func gMutation2(int) {}
`, string(text))
}

func testsOf(t *testing.T, pkg string) (names []string) {
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
	}
	return names
}

func TestMalformedLists(t *testing.T) {
	good := "Of no interest.\n\n=== a\nbreaks  that\nfile    x.go\ntests   . TestX\n--\n\told\n++\n\tnew\n"
	all, err := readList(good)
	require.NoError(t, err)
	require.Equal(t, []mutation{{"a", "that", "x.go", []suite{{".", "TestX"}}, "\told\n", "\tnew\n"}}, all)
	all, err = readList(good + "\n# --- more of them ---\n\n=== b\nbreaks  this\nfile    x.go\ntests   . TestX\n--\n\told\n++\n")
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Equal(t, all[0].new, "\tnew\n", "the remark is no part of it")
	require.Empty(t, all[1].new)
	for _, bad := range []string{
		good + "\n" + good[len("Of no interest.\n\n"):],
		"\n=== a\nfile    x.go\n",
		"\n=== a\nbreaks  that\nfile    x.go\ntests   . Test(\n--\n\told\n++\n",
	} {
		_, err := readList(bad)
		require.Error(t, err, bad)
	}
}

func TestOldTextMustBeThereOnce(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x.go"), []byte("one\ntwo\none\nthree\n"), 0o600))
	text, err := (&mutation{file: "x.go", old: "two\none\n", new: "four\n"}).apply(dir)
	require.NoError(t, err)
	require.Equal(t, "one\nfour\nthree\n", string(text))
	for _, old := range []string{"one\n", "tw\n", "wo\n"} {
		_, err := (&mutation{file: "x.go", old: old}).apply(dir)
		require.Error(t, err, old)
	}
}

func TestChoices(t *testing.T) {
	all := []mutation{{name: "heap-a"}, {name: "heap-b"}, {name: "c"}}
	got, err := choose(all, []string{"heap-.*"})
	require.NoError(t, err)
	require.Len(t, got, 2)
	_, err = choose(all, []string{"heap"})
	require.Error(t, err, "the whole name must match")
	got, err = shareOf(all, "1/3")
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, 2, mutate(t.Context(), []string{"-share", "2/3"}, io.Discard, io.Discard))
	require.Equal(t, 2, mutate(t.Context(), []string{"nobody"}, io.Discard, io.Discard))
}
