// This file kills crawlers: processes of the test binary that crawl the web of the test.

package frontiercolly_test

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/seed-7440039f/frontier"
	frontiercolly "github.com/seed-7440039f/frontier/adapters/colly"
	"github.com/seed-7440039f/frontier/adapters/colly/internal/web"
	"github.com/seed-7440039f/frontier/polite"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/stretchr/testify/require"
)

// crawlerDir is set for a process that crawls: where its store and the addresses of its web are.
const crawlerDir = "FRONTIERCOLLY_TEST_DIR"

const (
	killDelay   = 50 * time.Millisecond
	killThreads = 32
)

// Crawlers are killed three times at any moment. What they leave is crawled, nothing is lost, and by the
// server's clock no host is contacted too early.
func TestKilledCrawlsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	w := &web.Web{Hosts: 200, Pages: 5, Seeds: 20, Delay: killDelay}
	require.NoError(t, w.Start())
	defer func() { require.NoError(t, w.Close()) }()
	dir := t.TempDir()
	b, err := json.Marshal(w.Addrs())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "addrs"), b, 0o600))
	all := w.Hosts * w.Pages
	killed := 0
	for _, until := range []int{all / 10, all / 3, all * 2 / 3} {
		cmd := crawlerIn(dir)
		require.NoError(t, cmd.Start())
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running && w.Count() < until; {
			select {
			case err := <-ended:
				require.NoError(t, err)
				ended <- nil
				running = false
			case <-time.After(time.Millisecond):
			}
		}
		_ = cmd.Process.Kill() // it may just have ended
		if err := <-ended; err != nil {
			killed++
		}
	}
	require.Positive(t, killed)
	require.NoError(t, crawlerIn(dir).Run())
	got := w.Log()
	require.Equal(t, all, got.Pages, "pages were lost")
	require.LessOrEqual(t, got.Again, 3*killThreads, "only pages that were being fetched come again")
	require.Zero(t, got.Early, "smallest gap %v", got.Least)
	require.Zero(t, got.Together)
}

func crawlerIn(dir string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crawlerDir+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

func crawlUntilKilled(dir string) {
	if err := crawlIn(dir); err != nil {
		log.Fatal(err)
	}
}

func crawlIn(dir string) (err error) {
	var addrs []string
	b, err := os.ReadFile(filepath.Join(dir, "addrs"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &addrs); err != nil {
		return err
	}
	store, err := spill.Open(filepath.Join(dir, "store"), spill.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	f, err := frontier.Open(context.Background(), frontier.Options{Spill: store, Delay: frontier.FixedDelay(killDelay)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	q, err := frontiercolly.New(f, frontiercolly.Options{Threads: killThreads, Transport: &polite.Transport{Base: web.Transport(addrs)}})
	if err != nil {
		return err
	}
	c := colly.NewCollector()
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if err := q.Visit(e.Request, e.Attr("href")); err != nil {
			log.Print(err)
		}
	})
	for i := range 20 {
		if err := q.AddURL("http://" + web.Host(i) + "/0"); err != nil {
			return err
		}
	}
	return q.Run(c)
}
