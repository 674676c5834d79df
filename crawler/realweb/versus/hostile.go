// This file crawls an honest host beside hosts whose pages need as much memory as they can.

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// attack is a kind of hostile host, and the crawl that meets it.
type attack struct {
	name     string
	hosts    int
	page     func(w io.Writer, host string) // gzip; nil for no attack
	paths    string                         // which path has the page; empty means all
	kind     string                         // its Content-Type
	inMemory bool                           // no -dir
	flags    []string
}

var attacks = []attack{
	{name: "none", flags: []string{"-workers", "16"}},
	{name: "9,000 links, long base", hosts: 16, page: longBase, kind: "text/html", flags: []string{"-workers", "16"}},
	{name: "the same, in memory", hosts: 16, page: longBase, kind: "text/html", inMemory: true, flags: []string{"-workers", "16"}},
	{name: "100,000 links", hosts: 64, page: manyLinks, paths: "/", kind: "text/html", flags: []string{"-workers", "64"}},
	{name: "sitemap of 49,999 long URLs", hosts: 1, page: longSitemap, paths: "/sitemap.xml.gz", kind: "application/gzip", flags: []string{"-workers", "16", "-sitemaps"}},
}

// longBase writes 9,000 links of a few bytes, each a URL of 3,900.
func longBase(w io.Writer, host string) {
	fmt.Fprintf(w, `<base href="http://%s/%s/">`, host, strings.Repeat("a", 3900))
	for i := range 9000 {
		fmt.Fprintf(w, `<a href="%x">`, i)
	}
}

func manyLinks(w io.Writer, _ string) {
	for i := range 100_000 {
		fmt.Fprintf(w, `<a href="/%d">`, i)
	}
}

func longSitemap(w io.Writer, host string) {
	fmt.Fprint(w, `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
	long := strings.Repeat("a", 1980)
	for i := range 49_999 {
		fmt.Fprintf(w, "<url><loc>http://%s/%s%d</loc></url>", host, long, i)
	}
	fmt.Fprint(w, "</urlset>")
}

const honest = "honest.test"

// hostileWeb is a proxy with all hosts of an attack, and an honest one of 5,000 pages.
type hostileWeb struct {
	attack
	pages map[string][]byte // by host; read-only

	mu     sync.Mutex
	asked  int           // guarded by mu; requests for pages of the honest host
	last   time.Time     // guarded by mu; when the last of them came
	longer time.Duration // guarded by mu; the longest time between two
}

func newHostileWeb(a attack) *hostileWeb {
	w := &hostileWeb{attack: a, pages: map[string][]byte{}}
	for i := range a.hosts {
		host := fmt.Sprintf("h%d.test", i)
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		a.page(z, host)
		_ = z.Close() // into memory
		w.pages[host] = b.Bytes()
	}
	return w
}

func (w *hostileWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	page := w.pages[r.Host]
	switch {
	case r.URL.Path == "/robots.txt" && strings.HasPrefix(w.paths, "/sitemap"):
		fmt.Fprintf(rw, "Sitemap: http://%s%s\n", r.Host, w.paths)
	case r.URL.Path == "/robots.txt":
		http.NotFound(rw, r)
	case r.Host == honest:
		w.note()
		n, _ := strconv.Atoi(r.URL.Path[1:]) // 0 for the seed
		rw.Header().Set("Content-Type", "text/html")
		for i := range 10 {
			fmt.Fprintf(rw, "<p>Some text, and <a href=/%d>a link</a>.</p>\n", (n*10+i+1)%5000)
		}
	case w.paths == "" || w.paths == r.URL.Path:
		rw.Header().Set("Content-Type", w.kind)
		if w.kind == "text/html" {
			rw.Header().Set("Content-Encoding", "gzip")
		}
		_, _ = rw.Write(page) // the crawler may hang up
	default:
		rw.Header().Set("Content-Type", "text/plain")
		fmt.Fprintln(rw, "nothing")
	}
}

// note counts a request at the honest host.
func (w *hostileWeb) note() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.asked++; w.asked > 1 {
		w.longer = max(w.longer, now.Sub(w.last))
	}
	w.last = now
}

var (
	ended     = regexp.MustCompile(`(?m)^(\d+) pages, .* (\d+) waiting`)
	overPage  = regexp.MustCompile(`page-links: (\d+)`)
	overStore = regexp.MustCompile(`the frontier is full.*url=(\S+) .*links=(\d+)`)
)

// hostile crawls each attack for a while, and prints what it costs and what the honest host gets.
func (c *comparison) hostile(ctx context.Context) error {
	fmt.Printf("%v each, a delay of 1 s\n\n", c.limit)
	fmt.Println("| attack | peak memory | CPU | pages | requests at the honest host, longest gap | links beyond the page's bound | links beyond the frontier's |\n|---|---|---|---|---|---|---|")
	var faults []error
	for _, a := range attacks {
		if err := c.meet(ctx, a); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", a.name, err))
		}
	}
	return errors.Join(faults...)
}

// meet crawls one attack.
func (c *comparison) meet(ctx context.Context, a attack) error {
	w := newHostileWeb(a)
	proxy := httptest.NewServer(w)
	defer proxy.Close()
	args := append([]string{"crawl", "-proxy", proxy.URL, "-delay", "1s", "-max-time", c.limit.String()}, a.flags...)
	if !a.inMemory {
		args = append(args, "-dir", c.fresh("state"))
	}
	args = append(args, "http://"+honest+"/")
	for host := range w.pages {
		args = append(args, "http://"+host+"/")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.bin, "frontier"), args...)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 4 {
		err = nil // the time that was set has passed
	}
	end := ended.FindSubmatch(out)
	if err != nil || end == nil {
		return fmt.Errorf("%w\n%s", err, out[max(0, len(out)-2000):])
	}
	n := spent(cmd, began)
	page, store, own := 0, 0, 0
	if m := overPage.FindSubmatch(out); m != nil {
		page, _ = strconv.Atoi(string(m[1]))
	}
	for _, m := range overStore.FindAllSubmatch(out, -1) {
		links, _ := strconv.Atoi(string(m[2]))
		store += links
		if strings.Contains(string(m[1]), "//"+honest+"/") {
			own += links
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Printf("| %s | %d MiB | %.1f s | %s | %d, %.1f s | %d | %d |\n", a.name, n.memory>>20, n.cpu.Seconds(), end[1], w.asked, w.longer.Seconds(), page, store)
	switch {
	case n.memory > int64(c.peak)<<20:
		return fmt.Errorf("a peak of %d MiB; at most %d", n.memory>>20, c.peak)
	case own > 0:
		return fmt.Errorf("%d links of the honest host were dropped", own)
	}
	return nil
}
