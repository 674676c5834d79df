package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// write makes a module with these files the current folder.
func write(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	t.Setenv("GOWORK", "off")
	return dir
}

func TestCheckFindsWhatASystemLacks(t *testing.T) {
	write(t, map[string]string{
		"go.mod":     "module m.example\n\ngo 1.26.0\n",
		"a.go":       "package m\n\nvar X = name\n",
		"a_linux.go": "package m\n\nconst name = \"linux\"\n",
	})
	require.NoError(t, check([]string{"linux/amd64", "linux/arm64"}, "", []string{"."}))
	err := check([]string{"linux/amd64", "windows/amd64", "darwin/arm64"}, "", []string{"."})
	require.ErrorContains(t, err, "windows/amd64: ")
	require.ErrorContains(t, err, "darwin/arm64: ")
	require.ErrorContains(t, err, "a.go:3:9: undefined: name")
	require.NotContains(t, err.Error(), "linux/amd64")
	require.ErrorContains(t, check([]string{"nothing"}, "", []string{"."}), "nothing")
	require.Error(t, check([]string{"linux/amd64"}, "", []string{"./missing"}))
}

func TestCheckFindsWhatABuildFinds(t *testing.T) {
	for name, text := range map[string]string{
		"declared and not used: unused":       "func f() { unused := 1 }\n",
		`"unsafe" imported and not used`:      "import \"unsafe\"\n",
		"f has no body":                       "func f()\n",
		"missing return":                      "func f() int {}\n",
		"overflows":                           "const x int32 = 1 << 40\n",
		"expected declaration":                "fun\n",
		"undefined: other":                    "func f() { other() }\n",
		"pattern none: no matching files":     "", // below
		"cannot use \"\" (untyped string con": "var x int = \"\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"go.mod": "module m.example\n\ngo 1.26.0\n", "a.go": "package m\n\n" + text}
			if text == "" {
				files["a.go"] = "package m\n\nimport _ \"embed\"\n\n//go:embed none\nvar x string\n"
			}
			write(t, files)
			err := check([]string{"linux/amd64"}, "", []string{"."})
			if text == "" {
				require.Error(t, err) // go list says what
				return
			}
			require.ErrorContains(t, err, name)
		})
	}
}

func TestCheckReadsTheOverlay(t *testing.T) {
	dir := write(t, map[string]string{
		"go.mod": "module m.example\n\ngo 1.26.0\n",
		"a.go":   "package m\n\nvar X = Y\n",
		"b.txt":  "package m\n\nvar X, Y int\n",
	})
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, []byte(`{"Replace": {"`+filepath.Join(dir, "a.go")+`": "`+filepath.Join(dir, "b.txt")+`"}}`), 0o600))
	require.Error(t, check([]string{"linux/amd64"}, "", []string{"./..."}))
	require.NoError(t, check([]string{"linux/amd64"}, overlay, []string{"./..."}))
}
