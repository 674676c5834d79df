package crawler

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/filter"
)

// A resumed crawl continues counting.
func TestTrapsAreNotBegunAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "traps")
	crawl := func(from int, file string) (pages int64) {
		synctest.Test(t, func(t *testing.T) {
			w := newWeb()
			f := openFrontier(t, frontier.Options{})
			c := newCrawler(t, f, w, Options{Workers: 1, Traps: filter.TrapOptions{MaxPerPattern: 30}, TrapsFile: file})
			for i := range 20 {
				u := fmt.Sprintf("http://a.example/item/%d", from+i)
				w.always(u, page())
				_, err := c.Seed(t.Context(), u)
				if c.traps.Refuse(filter.Split(u, 0)).Refused() {
					require.Error(t, err)
				} else {
					require.NoError(t, err)
				}
			}
			require.NoError(t, c.Run(t.Context()))
			pages = c.Progress().Pages
		})
		return pages
	}
	assert.EqualValues(t, 20, crawl(0, file))
	assert.EqualValues(t, 10, crawl(20, file))
	assert.EqualValues(t, 0, crawl(40, file))
	assert.EqualValues(t, 20, crawl(60, ""))

	require.NoError(t, os.WriteFile(file, []byte("nonsense"), 0o644))
	assert.EqualValues(t, 20, crawl(80, file), "what cannot be read is told and replaced")
	assert.EqualValues(t, 10, crawl(100, file))

	_, err := New(openFrontier(t, frontier.Options{}), Options{UserAgent: "x (+http://a.example/)", TrapsFile: filepath.Dir(file)})
	assert.Error(t, err, "a folder")
	_, err = New(openFrontier(t, frontier.Options{}), Options{TrapsFile: filepath.Join(t.TempDir(), "none", "traps")})
	assert.ErrorContains(t, err, "crawler: TrapsFile: ")
}

// Counts of another version are no damage: they are refused and stay as they are.
func TestTrapCountsOfAnotherVersion(t *testing.T) {
	other := []byte("traps\x00\x02and what that version has")
	other = binary.BigEndian.AppendUint32(other, crc32.Checksum(other, crc32.MakeTable(crc32.Castagnoli)))
	file := filepath.Join(t.TempDir(), "traps")
	require.NoError(t, os.WriteFile(file, other, 0o600))
	_, err := New(openFrontier(t, frontier.Options{}), Options{UserAgent: "x (+http://a.example/)", TrapsFile: file})
	require.ErrorIs(t, err, frontier.ErrVersion)
	require.ErrorContains(t, err, file)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, other, b)
}
