package badgerfiles

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// Before this test is changed, compare the formats of the new badger's tables, logs and
// manifest with those that this package reads, and run spill's tests of damage.
func TestBadgerIsTheVersionWhoseFilesAreKnown(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "github.com/dgraph-io/badger/v4").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, `^v4\.9\.`, string(out))
}

func TestFormatOf(t *testing.T) {
	require.EqualValues(t, Format, FormatOf([]byte("BdgrXX\x00\x08more")))
	require.Zero(t, FormatOf([]byte("BdgrXX\x00")))
}
