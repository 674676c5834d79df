package frontier_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever needs a frontier in memory must not compile a database.
func TestRootImportsLittle(t *testing.T) {
	const module = "github.com/seed-7440039f/frontier"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", module).CombinedOutput()
	require.NoError(t, err, "%s", out)
	allowed := []string{module, "github.com/google/btree", "github.com/dchest/siphash"}
	got := strings.Fields(string(out))
	require.Contains(t, got, module)
	for _, p := range got {
		if !strings.HasPrefix(p, module+"/internal/") {
			require.True(t, slices.Contains(allowed, p), "the root package depends on %s", p)
		}
	}
}
