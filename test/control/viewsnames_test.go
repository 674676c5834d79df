package control

import (
	"fmt"
	"slices"
	"testing"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// Names come as the hosts do, from wherever the listing begins.
func TestHostNamesAreThoseOfHosts(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		var urls []string
		for i := range 600 { // more than are read at once, twice
			urls = append(urls, fmt.Sprintf("http://h%d.d%d.example/", i, i%7))
		}
		w.Add(append(urls, "http://d3.example/", "http://127.0.0.1/")...)
		for _, s := range []scope.Scope{scope.All(), scope.Domain("d3.example"), scope.Domain("example"), scope.Host("d3.example"), scope.Domain("nobody.example")} {
			for _, after := range []string{"", "d3.example", "h17.d3.example", "zzz.org"} {
				var want []string
				for x := range inspect.New(w.F).Hosts(s, after) {
					want = append(want, x.Host)
				}
				require.Equal(t, want, slices.Collect(inspect.New(w.F).HostNames(s, after)), "%v after %q", s, after)
			}
		}
		for name := range inspect.New(w.F).HostNames(scope.All(), "") {
			require.Equal(t, "127.0.0.1", name)
			break
		}
	})
}

func TestNoNamesOfAClosedFrontier(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	w.Add("http://a.example/")
	names := inspect.New(w.F).HostNames(scope.All(), "")
	require.NoError(t, w.F.Close())
	require.Empty(t, slices.Collect(names))
}
