//go:build unix

// This file makes the pictures of the documentation.

package browser

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

var shots = flag.String("shots", "", "`folder` for pictures of the page; empty: none are made")

// TestShots makes them after two minutes, when there is something to see.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("makes pictures with -shots FOLDER")
	}
	x, w := launch(t).open(t, 1280, 900), crawling(t)
	require.NoError(t, w.f.UpdateRule(frontier.Host("site-1.example"), func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Minute) }))
	require.NoError(t, w.f.BlockUntil(frontier.Host("site-2.example"), time.Now().Add(time.Hour)))
	time.Sleep(2 * time.Minute)
	for _, shot := range []struct {
		name, scheme, path string
		width, height      int
	}{
		{"page-light.png", "light", "/", 1280, 900}, {"page-dark.png", "dark", "/", 1280, 900},
		{"page-phone.png", "light", "/", 390, 844}, {"page-host.png", "light", "/host?name=site-2.example", 1280, 720},
	} {
		x.scheme(t, shot.scheme)
		x.size(t, shot.width, shot.height)
		x.goTo(t, w.page+shot.path)
		b := x.picture(t)
		require.Less(t, len(b), 200_000, shot.name)
		require.NoError(t, os.WriteFile(filepath.Join(*shots, shot.name), b, 0o644))
	}
}
