// Fresh shows the benefit of recrawling. It copies sites of realweb to a temporary folder, and
// edits their pages at known rates while two crawls with the same budget run over them: one that
// learns, and one that fetches all pages equally often. Then it compares how fresh their copies
// are, according to the servers' logs.
//
//	go run ./crawler/realweb/fresh -bin DIR [-for 20m] [-budget 10]
//
// DIR holds the programs serve and check of realweb, and frontier. Both crawls see the same edits;
// each has a separate server with its log.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// sites are small trees of Debian packages, by host.
var sites = map[string]string{
	"git-doc.test": "/usr/share/doc/git-doc", "debian-faq.test": "/usr/share/doc/debian/FAQ", "exim-doc.test": "/usr/share/doc/exim4-doc-html/spec_html",
	"debian-policy.test": "/usr/share/doc/debian-policy", "nodejs-doc.test": "/usr/share/doc/nodejs/api", "scrapy-doc.test": "/usr/share/doc/python-scrapy-doc/html",
}

// page is a page and when it was edited.
type page struct {
	host, path, file string
	life             time.Duration // mean time between edits; 0: never
	edits            []time.Time
	next             time.Time
}

func main() {
	bin := flag.String("bin", "", "`folder` of serve, check and frontier")
	long := flag.Duration("for", 20*time.Minute, "how long the crawls run; freshness is measured in the second half")
	budget := flag.Float64("budget", 10, "requests per second of each crawl")
	seed := flag.Uint64("seed", 1, "of the edits")
	keep := flag.String("dir", "", "`folder` for all of it (default: a temporary one, removed at the end)")
	lives := flag.String("lives", "20s,1m,5m,20m,0", "mean times between edits, each of as many pages; 0: never")
	flag.Parse()
	if err := run(*bin, *keep, *long, *budget, *seed, strings.Split(*lives, ",")); err != nil {
		log.Fatal("fresh: ", err)
	}
}

func run(bin, dir string, long time.Duration, budget float64, seed uint64, lives []string) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "fresh-*"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	pages, err := copySites(filepath.Join(dir, "root"))
	if err != nil {
		return err
	}
	for i, p := range pages {
		if p.life, err = time.ParseDuration(lives[i%len(lives)]); err != nil {
			return err
		}
		p.next = time.Now().Add(wait(r, p.life))
	}
	every := time.Duration(float64(len(pages)) / budget * float64(time.Second)).Round(time.Second)
	fmt.Printf("%d pages on %d hosts, edited every %s; %g requests a second: each page every %v if all are fetched alike\n", len(pages), len(sites), strings.Join(lives, ", "), budget, every)
	ctx, stop := context.WithTimeout(context.Background(), long)
	defer stop()
	crawls := map[string][]string{
		"learning": {"-recrawl-min", "2s", "-recrawl-max", "30m", "-recrawl-probe", "4s", "-recrawl-prior", "2m"},
		"uniform":  {"-recrawl-min", every.String(), "-recrawl-max", every.String(), "-recrawl-probe", every.String(), "-recrawl-prior", "2m"},
	}
	started := time.Now()
	ended := make(chan error, len(crawls))
	for name, flags := range crawls {
		go func() { ended <- crawl(ctx, bin, dir, name, append(flags, "-recrawl-budget", fmt.Sprint(budget))) }()
	}
	for edit(ctx, r, pages) {
	}
	for range crawls {
		if e := <-ended; e != nil {
			err = e
		}
	}
	if err != nil {
		return err
	}
	from, to := started.Add(long/2), started.Add(long)
	for _, name := range []string{"learning", "uniform"} {
		if err := judge(bin, filepath.Join(dir, name), name, pages, from, to); err != nil {
			return err
		}
	}
	return nil
}

// wait returns the time until the next edit.
func wait(r *rand.Rand, life time.Duration) time.Duration {
	if life == 0 {
		return math.MaxInt64 / 2
	}
	return time.Duration(r.ExpFloat64() * float64(life))
}

// copySites copies the trees, symbolic links resolved, and lists their pages.
func copySites(root string) (pages []*page, err error) {
	for host, tree := range sites {
		to := root + tree
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return nil, err
		}
		if out, err := exec.Command("cp", "-rL", tree, to).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "fresh: %s left out: %s\n", host, out)
			delete(sites, host)
			continue
		}
		err := filepath.WalkDir(to, func(file string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && strings.HasSuffix(file, ".html") {
				pages = append(pages, &page{host: host, path: filepath.ToSlash(strings.TrimPrefix(file, to)), file: file})
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(pages, func(a, b *page) int { return strings.Compare(a.file, b.file) })
	return pages, nil
}

// edit edits the next page when it is due. It returns false when ctx ends.
func edit(ctx context.Context, r *rand.Rand, pages []*page) bool {
	p := slices.MinFunc(pages, func(a, b *page) int { return a.next.Compare(b.next) })
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(p.next)):
	}
	b, err := os.ReadFile(p.file)
	if err != nil {
		log.Fatal("fresh: ", err)
	}
	text, _, _ := strings.Cut(string(b), "<!--edit-->")
	text += "<!--edit--><p>"
	for range 30 {
		for range 6 {
			text += string(rune('a' + r.IntN(26)))
		}
		text += " "
	}
	if err := os.WriteFile(p.file+".new", []byte(text), 0o644); err != nil {
		log.Fatal("fresh: ", err)
	}
	if err := os.Rename(p.file+".new", p.file); err != nil {
		log.Fatal("fresh: ", err)
	}
	now := time.Now()
	p.edits = append(p.edits, now)
	p.next = now.Add(wait(r, p.life))
	return true
}

// crawl serves the copied sites and crawls them until ctx ends.
func crawl(ctx context.Context, bin, dir, name string, flags []string) error {
	at := filepath.Join(dir, name)
	var hosts, seeds []string
	for host := range sites {
		hosts, seeds = append(hosts, host), append(seeds, "http://"+host+"/")
	}
	addr := at + ".addr"
	server := exec.Command(filepath.Join(bin, "serve"), "-root", filepath.Join(dir, "root"), "-listen", "127.0.0.1:0", "-addr-file", addr,
		"-log", at+".jsonl", "-latency", "5ms", "-only", strings.Join(hosts, ","))
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
	}()
	for !exists(addr) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
	}
	proxy, err := os.ReadFile(addr)
	if err != nil {
		return err
	}
	args := append([]string{"crawl", "-dir", at + ".state", "-delay", "50ms", "-recrawl", "-recrawl-report", "30s",
		"-scope-hosts", strings.Join(hosts, ","), "-proxy", "http://" + strings.TrimSpace(string(proxy))}, flags...)
	c := exec.CommandContext(ctx, filepath.Join(bin, "frontier"), append(args, seeds...)...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	out, err := os.Create(at + ".out")
	if err != nil {
		return err
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	if err := c.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func exists(name string) bool {
	s, err := os.Stat(name)
	return err == nil && s.Size() > 0
}

// judge computes how fresh a crawl's copy was, and whether it was polite.
func judge(bin, at, name string, pages []*page, from, to time.Time) error {
	f, err := os.Open(at + ".jsonl")
	if err != nil {
		return err
	}
	defer f.Close()
	reads := map[string][]time.Time{}
	requests := 0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var q struct {
			Kind, Host, Path string
			T                int64
			Status           int
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil || q.Kind != "req" || q.Path == "/robots.txt" {
			continue
		}
		t := time.Unix(0, q.T)
		if t.After(from) && t.Before(to) {
			requests++
		}
		if q.Status == 200 || q.Status == 304 {
			path := q.Path
			if strings.HasSuffix(path, "/") {
				path += "index.html"
			}
			reads[q.Host+path] = append(reads[q.Host+path], t)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	sum, n := 0., 0
	for _, p := range pages {
		if all := reads[p.host+p.path]; len(all) > 0 && all[0].Before(from) {
			sum += fresh(p.edits, all, from, to)
			n++
		}
	}
	fmt.Printf("%-8s  freshness %.1f%% of %d pages, %d requests in %v\n", name, 100*sum/float64(n), n, requests, to.Sub(from))
	report, err := exec.Command(filepath.Join(bin, "check"), "-delay", "50ms", at+".jsonl").Output()
	var verdict struct {
		OK     bool
		Checks map[string]struct{ Violations int }
	}
	if jsonErr := json.Unmarshal(report, &verdict); jsonErr != nil {
		return jsonErr
	}
	for what, c := range verdict.Checks {
		if c.Violations > 0 {
			fmt.Printf("%-8s  %d violations of %s\n", name, c.Violations, what)
		}
	}
	if err != nil || !verdict.OK {
		return fmt.Errorf("%s was not polite: %w", name, err)
	}
	fmt.Printf("%-8s  polite\n", name)
	return nil
}

// fresh returns the share of the time in which the last read came after the last edit.
func fresh(edits, reads []time.Time, from, to time.Time) float64 {
	const steps = 2000
	good := 0
	e, r := 0, 0
	for i := range steps {
		t := from.Add(to.Sub(from) * time.Duration(i) / steps)
		for e < len(edits) && !edits[e].After(t) {
			e++
		}
		for r < len(reads) && !reads[r].After(t) {
			r++
		}
		if r > 0 && (e == 0 || reads[r-1].After(edits[e-1])) {
			good++
		}
	}
	return float64(good) / steps
}
