package rise

import (
	"encoding/binary"
	"testing"

	"github.com/seed-7440039f/frontier/internal/instant"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// What is learned of hosts without notes takes a quarter of the memory, the latest included: it causes no walk
// of others, as notes do that take half.
func TestWhatIsLearnedLeavesRoom(t *testing.T) {
	x := &Notes{Limit: 40 * hostSize, hosts: map[uint32]*noted{}}
	for host := range uint32(1000) {
		x.Ended(&Walk{host: host + 1, left: 1, notes: make([]note, 1)})
		require.Equal(t, 0.5, x.hosts[host+1].missed)
	}
	require.LessOrEqual(t, x.Size(), x.Limit/4)
	for i := range uint64(5) {
		m := storage.Mark{}
		binary.LittleEndian.PutUint64(m[:], i<<levelBits)
		x.Add(0, uint32(2000+i), m, 2, Hint{}, 1000, 3)
	}
	require.EqualValues(t, instant.Never, x.NextRound())
	x.Check(t.Errorf)
}
