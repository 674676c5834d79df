// Package realurls provides tests with 1.8 million URLs as written by authors of web pages. They
// are data for scheduling only and must not be fetched.
package realurls

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"
)

// file is the location of the URLs, beside the repository.
var file = filepath.Join("..", "shared", "data", "urls-1.8m.txt.gz")

// Load returns n of the URLs, chosen and shuffled by a seed. If the file is missing it skips the
// test, except on CI, where it fails.
func Load(tb testing.TB, n int, seed uint64) []string {
	tb.Helper()
	f, err := os.Open(filepath.Join(repository(tb), file))
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") != "true" {
		tb.Skipf("SKIPPED: the file of real URLs is missing: %v", err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		tb.Fatal(err)
	}
	var all bytes.Buffer
	all.Grow(112 << 20)
	if _, err := io.Copy(&all, z); err != nil {
		tb.Fatal(err)
	}
	text := unsafe.String(unsafe.SliceData(all.Bytes()), all.Len()) // never written again
	urls := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if n > len(urls) {
		tb.Fatalf("%d URLs wanted, there are %d", n, len(urls))
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(urls), func(i, j int) { urls[i], urls[j] = urls[j], urls[i] })
	out := make([]string, n) // copies, so that the rest can go
	for i := range out {
		out[i] = strings.Clone(urls[i])
	}
	return out
}

// repository returns the folder of the repository: the nearest one with a go.mod, from the test's
// folder upwards.
func repository(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			tb.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}
