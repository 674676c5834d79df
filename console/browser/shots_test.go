//go:build unix

// This file makes the pictures of the documentation.

package browser

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier/console"
	"github.com/seed-7440039f/frontier/scope"
)

var shots = flag.String("shots", "", "`folder` for pictures of the page; empty: none are made")

// small is a PNG with its 256 most frequent colours.
func small(t *testing.T, b []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(b))
	require.NoError(t, err)
	count := map[color.Color]int{}
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			count[from.At(x, y)]++
		}
	}
	colours := slices.Collect(maps.Keys(count))
	slices.SortFunc(colours, func(a, b color.Color) int { return count[b] - count[a] })
	palette := color.Palette(colours[:min(256, len(colours))])
	to, index := image.NewPaletted(from.Bounds(), palette), map[color.Color]uint8{}
	for _, c := range colours {
		index[c] = uint8(palette.Index(c))
	}
	for y := range from.Bounds().Dy() {
		for x := range from.Bounds().Dx() {
			to.SetColorIndex(x, y, index[from.At(x, y)])
		}
	}
	var out bytes.Buffer
	require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, to))
	return out.Bytes()
}

// town is a web of some fifty hosts that answer as differently as hosts do.
func town(out http.ResponseWriter, r *http.Request) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(r.Host + r.URL.Path))
	n := int(h.Sum32() >> 1)
	time.Sleep(time.Duration(20+n%90) * time.Millisecond)
	switch {
	case r.URL.Path == "/robots.txt" && strings.HasPrefix(r.Host, "library"):
		fmt.Fprint(out, "User-agent: *\nCrawl-delay: 4\n")
		return
	case r.URL.Path == "/robots.txt":
		http.NotFound(out, r)
		return
	case strings.HasPrefix(r.Host, "attic"):
		http.Error(out, "not today", http.StatusInternalServerError)
		return
	case strings.HasPrefix(r.Host, "busy"):
		out.Header().Set("Retry-After", "20")
		http.Error(out, "too many", http.StatusTooManyRequests)
		return
	case strings.HasPrefix(r.Host, "sleepy"):
		time.Sleep(3 * time.Second)
		return
	case n%23 == 0:
		http.NotFound(out, r)
		return
	case n%31 == 0:
		http.Redirect(out, r, "/", http.StatusMovedPermanently)
		return
	}
	out.Header().Set("Content-Type", "text/html")
	kinds := []string{"shop", "books", "press", "library", "museum", "archive"}
	for i := range 6 {
		fmt.Fprintf(out, `<a href="/%s/%d.html">page</a> `, kinds[(n+i)%6], n/7%9973+i)
	}
	fmt.Fprintf(out, `<a href="http://%s-%d.example/">other</a> <a href="http://%s.example/%d">ill</a> %s`,
		kinds[n%6], n/11%8, []string{"attic", "busy-shop", "sleepy"}[n%3], n%40, strings.Repeat("The quick brown fox jumps over the lazy dog. ", n%400))
}

// TestShots makes them after three minutes, when there is something to see.
func TestShots(t *testing.T) {
	if *shots == "" {
		t.Skip("makes pictures with -shots FOLDER")
	}
	x, w := launch(t).open(t, 1400, 900), &world{asks: map[string]int{}}
	w.crawl(t, http.HandlerFunc(town), time.Second, "http://shop-1.example/", "http://books-2.example/", "http://press-3.example/")
	picture := func(name, scheme, path string, width, height int) {
		x.scheme(t, scheme)
		x.size(t, width, height)
		x.goTo(t, w.page+path)
		require.NoError(t, os.WriteFile(filepath.Join(*shots, name+".png"), small(t, x.picture(t)), 0o644))
	}
	time.Sleep(*shotsAfter)
	picture("page-light", "light", "/", 1400, 900)
	picture("page-dark", "dark", "/", 1400, 900)
	picture("page-whole", "light", "/", 1400, 2400)
	picture("page-phone", "light", "/", 390, 844)
	picture("page-phone-whole", "dark", "/", 390, 5200)
	picture("page-hosts-phone", "light", "/hosts", 390, 844)
	picture("page-hosts", "light", "/hosts", 1400, 900)
	picture("page-urls", "light", "/urls", 1400, 900)
	picture("page-rules", "light", "/rules", 1400, 900)
	picture("page-host", "light", "/host?name=attic.example", 1400, 900)
	picture("page-url", "light", "/url?url=http://shop-1.example/", 1400, 900)
	picture("page-enter", "light", "/enter", 1400, 900)
	picture("page-lost", "light", "/nowhere", 1400, 900)
	require.NoError(t, w.f.Pause(scope.All()))
	time.Sleep(3 * time.Second)
	picture("page-paused", "light", "/", 1400, 900)
	picture("page-paused-phone", "dark", "/", 390, 844)
	require.NoError(t, w.f.Resume(scope.All()))
	_, err := console.Direct(w.c).Do(t.Context(), console.Action{Do: "stop"})
	require.NoError(t, err)
	x.until(t, "it has ended", func() bool {
		s, err := console.Direct(w.c).Status(t.Context())
		return err == nil && s.State == console.StateEnded
	})
	picture("page-ended", "light", "/", 1400, 900)
}

var shotsAfter = flag.Duration("shots-after", 3*time.Minute, "`time` after which pictures are made")

// TestShotsOfBadTimes makes pictures of a crawl whose hosts all fail, and of one without URLs.
func TestShotsOfBadTimes(t *testing.T) {
	if *shots == "" {
		t.Skip("makes pictures with -shots FOLDER")
	}
	x := launch(t).open(t, 1400, 900)
	for name, seeds := range map[string][]string{"page-trouble": {"http://attic.example/", "http://sleepy.example/", "http://busy-shop.example/"}, "page-empty": nil} {
		w := &world{asks: map[string]int{}}
		w.crawl(t, http.HandlerFunc(town), time.Second, seeds...)
		time.Sleep(20 * time.Second)
		for _, scheme := range []string{"light", "dark"} {
			x.scheme(t, scheme)
			x.goTo(t, w.page+"/")
			require.NoError(t, os.WriteFile(filepath.Join(*shots, name+"-"+scheme+".png"), small(t, x.picture(t)), 0o644))
		}
	}
}
