// This file kills a crawl with everything on.

package processing

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/neardup"
	"github.com/seed-7440039f/frontier/crawler/warc"
	"github.com/seed-7440039f/frontier/spill"
)

const (
	killDir  = "MODULES_KILL_DIR"
	killAddr = "MODULES_KILL_ADDR"
)

// crawlDurably is the process to be killed: it continues the crawl in a folder and prints each URL
// that is done.
func crawlDurably(ctx context.Context, dir, addr string) error {
	fo, co, err := options(addr)
	if err != nil {
		return err
	}
	fo.Delay = frontier.FixedDelay(time.Millisecond) // also after a crash
	store, err := spill.Open(filepath.Join(dir, "frontier"), spill.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	fo.Spill = store
	f, err := frontier.Open(ctx, fo)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := warc.Open(filepath.Join(dir, "warc"), warc.Options{MaxSize: 20_000, Remember: 100})
	if err != nil {
		return err
	}
	defer w.Close()
	x, err := neardup.Open(filepath.Join(dir, "near"), neardup.Options{})
	if err != nil {
		return err
	}
	defer x.Close()
	st, err := OpenStatistics(filepath.Join(dir, "stats"), StatisticsOptions{})
	if err != nil {
		return err
	}
	defer st.Close()
	sm := NewSitemaps(f, SitemapOptions{UserAgent: agent})
	co.Robots = sm
	co.OnPage = Chain(Archive(w, agent), ContentSeen(x, SeenOptions{}), st.Handle, sm.Handle)
	co.OnDone = func(l frontier.Lease, o frontier.Outcome) {
		if o.Result == frontier.Visited || o.Result == frontier.Gone {
			fmt.Println("done", l.Entry.URL)
		}
	}
	c, err := crawler.New(f, co)
	if err != nil {
		return err
	}
	if _, err := c.Seed(ctx, "http://a.example/"); err != nil {
		return err
	}
	if err := c.Run(ctx); err != nil {
		return err
	}
	fmt.Println("over")
	return nil
}

// After kill -9, again and again, no page is missing in the archive that was reported as
// done, none is reported twice, and no record is torn.
func TestKill(t *testing.T) {
	if dir := os.Getenv(killDir); dir != "" {
		require.NoError(t, crawlDurably(t.Context(), dir, os.Getenv(killAddr)))
		return
	}
	pages := map[string]string{"a.example/robots.txt": "Sitemap: http://a.example/map.xml\n"}
	var all, locs []string
	for i := range 60 {
		pages[fmt.Sprint("a.example/", i)] = fmt.Sprintf("<a href=/%d>next</a><p>%s", i+1, prose(i))
		pages[fmt.Sprint("b.example/", i)] = fmt.Sprintf("<a href=/%d>next</a><p>%s", i+1, prose(i))
		all = append(all, fmt.Sprint("http://a.example/", i), fmt.Sprint("http://b.example/", i))
		locs = append(locs, fmt.Sprintf("<url><loc>/%d</loc></url>", i))
	}
	pages["a.example/"] = "<a href=http://b.example/0>b</a>"
	pages["a.example/map.xml"] = "<urlset>" + strings.Join(locs, "") + "</urlset>"
	s := serve(t, pages)
	dir := t.TempDir()
	done := map[string]int{}
	over := false
	for round := 0; !over && round < 20; round++ {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKill$")
		cmd.Env = append(os.Environ(), killDir+"="+dir, killAddr+"="+s.Listener.Addr().String())
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		n := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			switch line := lines.Text(); {
			case line == "over":
				over = true
			case strings.HasPrefix(line, "done "):
				done[line[5:]]++
				if n++; n == 15+11*round { // in the middle of what follows
					_ = cmd.Process.Kill()
				}
			}
		}
		_ = cmd.Wait()
	}
	require.True(t, over, "the crawl does not end")
	kept := map[string]bool{}
	for _, line := range archived(t, filepath.Join(dir, "warc")) {
		url, _, _ := strings.Cut(line, " ")
		kept[url] = true
	}
	for _, url := range all {
		assert.True(t, kept[url], "%s is not in the archive", url)
		assert.LessOrEqual(t, done[url], 1, "%s is done twice", url)
	}
	st, err := OpenStatistics(filepath.Join(dir, "stats"), StatisticsOptions{})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, st.Report().Total.Answers, int64(len(done)), "each was counted before it was done")
	require.NoError(t, st.Close())
	x, err := neardup.Open(filepath.Join(dir, "near"), neardup.Options{})
	require.NoError(t, err)
	mirrors, err := x.Mirrors()
	require.NoError(t, err)
	require.Len(t, mirrors, 1)
	assert.GreaterOrEqual(t, mirrors[0].Same, 60)
	require.NoError(t, x.Close())
}
