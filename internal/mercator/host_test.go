package mercator

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/seed-7440039f/frontier/internal/timeheap"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Hosts are found under their names however their hashes collide, and forgetting
// one hides no other.
func TestHostTableAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Config{Levels: 3})
		known := map[string]uint32{}
		c.Hash = func(name []byte) uint64 { return uint64(len(name)*7+int(name[len(name)-1])%3) << 51 } // few, and equal
		hash := func(name string) uint64 { return c.Hash([]byte(name)) }
		draw := func() string {
			return strings.Repeat("h", 1+rapid.IntRange(0, 5).Draw(t, "len")) + fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "n"))
		}
		t.Repeat(map[string]func(*rapid.T){
			"ensure": func(*rapid.T) {
				name := draw()
				id := c.Ensure(hash(name), name)
				if was := known[name]; was != 0 {
					require.Equal(t, was, id)
				}
				known[name] = id
			},
			"forget": func(*rapid.T) {
				name := draw()
				if id := known[name]; id != 0 {
					c.forget(id)
					delete(known, name)
				}
			},
			"": func(*rapid.T) {
				require.Equal(t, len(known), c.Hosts.Len())
				for name, id := range known {
					require.Equal(t, id, c.Lookup(hash(name), name))
					require.Equal(t, name, string(c.Name(c.Hosts.At(id))))
				}
				require.Zero(t, c.Lookup(hash("none1"), "none1"))
			},
		})
	})
}

// A hundred million URLs of five million hosts are eight million queues.
func TestRecordsAreSmall(t *testing.T) {
	require.EqualValues(t, 48, unsafe.Sizeof(Host{}))
	require.EqualValues(t, 52, unsafe.Sizeof(Queue{}))
	require.EqualValues(t, 16, unsafe.Sizeof(timeheap.Item{}))
}
