// This file damages real folders at random: bits, lengths and whole files of all
// kinds. What is wrong is reported, or does no harm; nothing is removed.

package spill_test

import (
	"errors"
	"flag"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/internal/lab/trycount"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/spill/spilltest"
	"github.com/seed-7440039f/frontier/storage"
)

var (
	damages = flag.Int("frontier.damages", 15, "how many damages to folders are tried, of each kind of folder")
	seed    = flag.Uint64("frontier.seed", 0, "replay random tests with this seed; 0: a new one")
)

func newRand(t testing.TB) *rand.Rand {
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("replay with -frontier.seed=%d", s)
	return rand.New(rand.NewPCG(s, 1))
}

// livedIn is lived in two real folders: one whose store was closed, and one whose
// process died.
func livedIn(t *testing.T) (closed, died string, m *model) {
	t.Helper()
	closed = filepath.Join(t.TempDir(), "store")
	s, err := spilltest.OpenFolder(closed, small)
	require.NoError(t, err)
	m = start(t, 5, s)
	script(m, func(step string, err error) { require.NoError(t, err, step) })
	for range 4 {
		require.NoError(t, m.commit(20, 10))
	}
	died = imaged(t, closed)
	require.NoError(t, s.Release())
	require.NoError(t, s.Close())
	return closed, died, m
}

// imaged copies a folder in use as the death of the process would leave it now.
func imaged(t testing.TB, from string) string {
	t.Helper()
	for { // until nothing changes meanwhile
		to := filepath.Join(t.TempDir(), "image")
		if os.CopyFS(to, os.DirFS(from)) == nil && maps.Equal(filesOf(t, to), filesOf(t, from)) {
			return to
		}
	}
}

func copied(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	require.NoError(t, os.CopyFS(to, os.DirFS(from)))
	return to
}

// filesOf lists the files of a folder, and what they hold.
func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if errors.Is(err, fs.ErrNotExist) {
			files[name] = "gone meanwhile"
			return nil
		}
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			b, err = []byte("gone meanwhile"), nil
		}
		files[filepath.ToSlash(name)] = string(b)
		return err
	}))
	return files
}

// hurt damages one file at random, and returns how.
func hurt(t testing.TB, r *rand.Rand, dir string) string {
	t.Helper()
	files := filesOf(t, dir)
	kinds := map[string][]string{} // by extension or folder: each kind as often
	for name := range files {
		kind := filepath.Dir(name) + filepath.Ext(name)
		if kind == "." {
			kind = name
		}
		kinds[kind] = append(kinds[kind], name)
	}
	of := func(names []string) string { // in an order that the seed decides
		least := names[0]
		salt := r.Uint32()
		rank := func(s string) uint32 {
			h := salt
			for _, b := range []byte(s) {
				h = (h ^ uint32(b)) * 16777619
			}
			return h
		}
		for _, n := range names[1:] {
			if rank(n) < rank(least) {
				least = n
			}
		}
		return least
	}
	var keys []string
	for k := range maps.Keys(kinds) {
		keys = append(keys, k)
	}
	name := of(kinds[of(keys)])
	b := []byte(files[name])
	used := len(strings.TrimRight(string(b), "\x00")) // the rest is room
	path, what := filepath.Join(dir, name), ""
	at := 0
	if used > 0 {
		at = r.IntN(used)
	}
	switch kind := r.IntN(6); {
	case kind == 0 || len(b) == 0:
		require.NoError(t, os.Remove(path))
		return "removed " + name
	case kind == 1:
		b, what = b[:at], "cut "
	case kind == 2:
		clear(b[at:min(len(b), at+1+r.IntN(600))])
		what = "zeroed "
	case kind == 3:
		for i := at; i < min(used, at+1+r.IntN(600)); i++ {
			b[i] = byte(r.Uint32())
		}
		what = "garbled "
	default:
		b[at] ^= 1 << r.IntN(8)
		what = "flipped "
	}
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return what + name
}

func TestFolderDamage(t *testing.T) {
	r := newRand(t)
	closed, died, m := livedIn(t)
	for state, dir := range map[string]string{"closed": closed, "died": died} {
		t.Run(state, func(t *testing.T) {
			tries := trycount.Of(t)
			reported, harmless := map[string]int{}, map[string]int{}
			for range *damages {
				hurtOne := copied(t, dir)
				what := hurt(t, r, hurtOne)
				before := filesOf(t, hurtOne)
				s, err := spill.Open(hurtOne, small)
				if err != nil {
					requireDamage(t, err, what)
					reported[what[:4]]++
					after := filesOf(t, hurtOne)
					delete(before, "LOCK")
					delete(after, "LOCK")
					require.Equal(t, before, after, "%s: a failed Open changed something", what)
				} else if err := m.use(s); err != nil {
					requireDamage(t, err, what)
					reported[what[:4]]++
					require.NoError(t, s.Close(), what)
				} else {
					require.NoError(t, m.holds(s), "%s: nobody says so", what)
					harmless[what[:4]]++
					require.NoError(t, s.Close(), what)
				}
				require.NoError(t, os.RemoveAll(hurtOne))
				tries.Tried(1)
			}
			t.Logf("reported %v, harmless %v", reported, harmless)
		})
	}
}

func requireDamage(t testing.TB, err error, what string) {
	t.Helper()
	var ce *storage.CorruptError
	if !errors.As(err, &ce) {
		require.NoError(t, err, "%s: not reported as damage", what)
	}
	require.True(t, len(ce.Key) > 0 || ce.File != "", "%s: no name: %v", what, err)
	require.Error(t, ce.Unwrap())
}
