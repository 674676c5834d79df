package pb

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed code is what the script generates. It runs where Debian's protoc is installed, at
// the version that the code names.
func TestGeneratedCodeIsThatOfTheProtoFile(t *testing.T) {
	version, err := exec.Command("protoc", "--version").Output()
	if err != nil || string(version) != "libprotoc 3.21.12\n" {
		t.Skipf("no protoc 3.21.12 here: %q, %v", version, err)
	}
	dir := t.TempDir()
	out, err := exec.Command("./generate", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	for _, name := range []string{"urlfrontier.pb.go", "urlfrontier_grpc.pb.go"} {
		want, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), name)
	}
}
