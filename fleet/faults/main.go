// Command faults kills, freezes and ends the nodes of a fleet at random while a crawl goes on, and then
// compares what the crawled web has seen with what a fleet promises:
//
//	go run ./fleet/faults -n 20
//
// Every page must be fetched, no page whose end was acknowledged again, and no host before its delay is over,
// or twice at once. The exit status is 1 otherwise. It needs a Unix system, and about 15 seconds per fault. On
// Linux, if it may make networks (as root, or where users may have namespaces) and there is the command ip, each
// node has a network of its own, and links are cut, too. As root, each has a disk of its own, a file NAME.disk, which
// becomes full or slow. The command of the nodes is built so that their clocks can be wrong.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// options of a run.
type options struct {
	faults, pages, hosts  int
	known, partitions     int
	shared                int
	fetchers, workers     int
	slow                  float64
	leaseS                int
	seed                  uint64
	only, binary, keep    string
	fetch                 string
	every                 time.Duration
	engine                string
	most                  time.Duration
	finalWait, quietLimit time.Duration
}

// errFailed says that the fleet broke a promise.
var errFailed = errors.New("the fleet did not keep what it promises")

func main() {
	if order := os.Getenv(asFetcher); order != "" {
		fmt.Fprintln(os.Stderr, fetch(order))
		os.Exit(1)
	}
	o := options{}
	flag.IntVar(&o.faults, "n", 20, "how many faults")
	flag.DurationVar(&o.most, "for", 24*time.Hour, "how long there are faults at most")
	flag.IntVar(&o.pages, "pages", 3000, "how many pages at first; as many come again and again while there are faults")
	flag.IntVar(&o.known, "known", 0, "how many other URLs the frontier has at first, all of them visited")
	flag.IntVar(&o.partitions, "partitions", 1, "among how many partitions the fleet divides the hosts")
	flag.IntVar(&o.hosts, "hosts", 150, "how many hosts")
	flag.IntVar(&o.shared, "shared", 1, "how many hosts in a row have one address, to which they owe politeness together")
	flag.IntVar(&o.fetchers, "fetchers", 3, "how many processes fetch")
	flag.IntVar(&o.workers, "workers", 8, "how many workers each of them has")
	flag.Float64Var(&o.slow, "slow", 0.04, "share of pages that take long, for which fetchers extend their leases")
	flag.IntVar(&o.leaseS, "lease-s", 0, "what fetchers ask for, in seconds; 0: one of several")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()%1e6), "what the faults and the web are drawn with")
	flag.StringVar(&o.only, "only", "", "kinds of faults, comma-separated; empty: all")
	flag.DurationVar(&o.every, "every", 0, "time between two faults; 0: random pauses")
	flag.StringVar(&o.fetch, "fetch", "", "a command for sh that crawls in place of each fetcher: see foreign.go")
	flag.StringVar(&o.engine, "engine", "etcd", "the engine that the nodes share: etcd or nats")
	flag.StringVar(&o.binary, "binary", "", "the frontier command; empty: it is built")
	flag.StringVar(&o.keep, "keep", "", "a folder for logs and stores; empty: a temporary one, which stays after a failure")
	flag.DurationVar(&o.finalWait, "final-wait", 5*time.Minute, "how long all pages may take after the last fault")
	flag.DurationVar(&o.quietLimit, "quiet-limit", 75*time.Second, "time without a contact after which a stall is reported")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, finish)
	status := start(ctx, o)
	cancel()
	os.Exit(status)
}

// start returns the exit status.
func start(ctx context.Context, o options) (status int) {
	temporary, err := o.keep == "", error(nil)
	if temporary {
		o.keep, err = os.MkdirTemp("", "faults")
	} else if err = os.MkdirAll(o.keep, 0o777); err == nil {
		o.keep, err = filepath.Abs(o.keep)
	}
	if err == nil && o.binary == "" {
		o.binary = filepath.Join(o.keep, "frontier")
		err = build(ctx, o.binary)
	}
	if err == nil {
		l, ended, none := (*links)(nil), 0, errors.New("the crawlers are others'")
		if o.fetch == "" {
			l, ended, none = enter(ctx, o)
		}
		if status = ended; none != nil {
			fmt.Fprintln(os.Stderr, "no links are cut, and no disks are full or slow:", none)
		}
		if l != nil || none != nil {
			err = run(ctx, o, l, os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		status = 1
	}
	if status == 0 && temporary {
		_ = os.RemoveAll(o.keep)
	}
	return status
}

// run does everything in the folder o.keep, and returns errFailed if the fleet broke a promise.
func run(ctx context.Context, o options, l *links, out io.Writer) (err error) {
	if !supported {
		return errors.New("processes cannot be stopped and continued on this system")
	}
	if o.hosts < 1 || o.shared < 1 || o.pages < o.hosts || o.fetchers < 1 || o.workers < 1 {
		return errors.New("want at least a host, a fetcher, a worker, and a page for each host")
	}
	dir := o.keep
	journal, err := os.Create(filepath.Join(dir, "faults.log"))
	if err != nil {
		return err
	}
	defer journal.Close()
	out = io.MultiWriter(out, journal)
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%s %s\n", clock(time.Now()), fmt.Sprintf(format, args...))
	}
	say("seed %d, logs in %s", o.seed, dir)
	var allowed need
	if l != nil {
		allowed |= ofLinks | ofDisks
		if err := newDisks(dir); err != nil {
			allowed &^= ofDisks
			say("no disks are full or slow: %v", err)
		}
	}
	if _, err := os.Stat(o.binary + overlayOf); err == nil {
		allowed |= ofClocks
	}
	draw, err := o.kinds(allowed)
	if err != nil {
		return err
	}
	t := &trial{options: o, links: l, draw: draw, say: say, out: out, dir: dir}
	defer t.stop()
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.faultsAndWaves(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := t.judge(ctx); err != nil {
		return fmt.Errorf("%w; seed %d, logs in %s", err, o.seed, dir)
	}
	return nil
}

// kinds returns what to draw from, where the system allows some of what they need.
func (o *options) kinds(allowed need) (draw []kind, err error) {
	only := strings.FieldsFunc(o.only, func(r rune) bool { return r == ',' })
	var names []string
	for _, k := range kinds {
		if k.needs&^allowed == 0 {
			names = append(names, k.name)
			if o.only == "" || slices.Contains(only, k.name) {
				share := max(k.share, min(1, len(only))) // kinds without a share come if -only names them
				draw = append(draw, slices.Repeat([]kind{k}, share)...)
			}
		}
	}
	for _, s := range only {
		if !slices.Contains(names, s) {
			return nil, fmt.Errorf("-only: there is no fault %q here; want some of %q", s, names)
		}
	}
	return draw, nil
}

// build builds the frontier command from the repository in which this process was started.
func build(ctx context.Context, binary string) error {
	root, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			break
		}
		if filepath.Dir(root) == root {
			return errors.New("there is no go.work above: start it in the repository, or give -binary")
		}
		root = filepath.Dir(root)
	}
	if err != nil {
		return err
	}
	words := []string{"build", "-o", binary, "./cmd/frontier"}
	if os.Getenv("CI") != "" {
		fmt.Fprintln(os.Stderr, "no clocks are wrong: to build the command for that takes minutes")
	} else if err := overlay(binary); err != nil {
		fmt.Fprintln(os.Stderr, "no clocks are wrong:", err)
	} else {
		words = slices.Insert(words, 1, "-overlay", binary+overlayOf)
	}
	cmd := exec.CommandContext(ctx, "go", words...)
	cmd.Dir = root
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, b)
	}
	return nil
}

// trial is one run.
type trial struct {
	options
	links *links // nil: none are cut
	draw  []kind
	say   func(string, ...any)
	out   io.Writer
	dir   string

	web      *web
	site     *http.Server
	nodes    *cluster
	fetchers []*process
	faulter  *faulter
	once     sync.Once
}

func (t *trial) begin(ctx context.Context) error {
	t.web = newWeb(t.seed, t.hosts, t.shared, t.say)
	host := "127.0.0.1"
	if t.links != nil {
		host = t.links.address(rest)
	}
	l, err := net.Listen("tcp", host+":0")
	if err != nil {
		return err
	}
	t.site = &http.Server{Handler: t.web}
	go func() { _ = t.site.Serve(l) }()
	if t.nodes, err = newCluster(t.options, t.dir, t.links, t.say); err != nil {
		return err
	}
	for _, p := range t.nodes.nodes {
		if err := p.begin(); err != nil {
			return err
		}
	}
	t.faulter = &faulter{r: rand.New(rand.NewPCG(t.seed, 2)), nodes: t.nodes, say: t.say, every: t.every, next: time.Now()}
	if t.faulter.settled(ctx, true); ctx.Err() != nil {
		return ctx.Err()
	}
	if err := t.visited(ctx); err != nil {
		return err
	}
	if err := t.wave(ctx); err != nil {
		return err
	}
	for i := range t.options.fetchers {
		label, site := fmt.Sprintf("f%d", i+1), "http://"+l.Addr().String()
		var p *process
		if t.fetch != "" {
			p, err = newForeign(t.options, label, t.nodes, site, t.dir, t.say)
		} else {
			p, err = newFetcher(fetcherOrder{Name: label, Nodes: t.nodes.urls, Web: site, Workers: t.workers, Slow: t.slow, LeaseS: t.leaseS, Shared: t.shared}, t.dir, t.say)
		}
		if err == nil {
			err = p.begin()
		}
		if err != nil {
			return err
		}
		t.fetchers = append(t.fetchers, p)
	}
	t.faulter.fetchers = t.fetchers
	return nil
}

// visited imports URLs that were visited before.
func (t *trial) visited(ctx context.Context) error {
	for t.known > 0 {
		r, w := io.Pipe()
		go func() {
			b := bufio.NewWriter(w)
			for i := range t.known {
				fmt.Fprintf(b, `{"url":"http://old%d.example/p%d","finished":1}`+"\n", i/100, i)
			}
			_ = w.CloseWithError(b.Flush())
		}()
		began := time.Now()
		err := t.send(ctx, t.nodes.urls[0]+"/v1/import", r)
		_ = r.Close()
		if err == nil {
			t.say("%d visited URLs imported in %v", t.known, time.Since(began).Round(time.Second))
			break
		}
		t.say("not imported yet: %v", err) // some partition may have no machine yet
		if wait(ctx, time.Second); ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	return nil
}

// wave makes the web larger, and adds the URLs that no page links to.
func (t *trial) wave(ctx context.Context) error {
	roots := t.web.grow(t.pages)
	body := strings.Join(roots, "\n") + "\n"
	for i := 0; ; i++ {
		once, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := t.send(once, t.nodes.urls[i%len(t.nodes.urls)]+"/v1/urls", strings.NewReader(body))
		cancel()
		if err == nil {
			t.web.acknowledged(roots...)
			t.say("%d more pages, %d of them added", t.pages, len(roots))
			return nil
		}
		if wait(ctx, 200*time.Millisecond); ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
}

func (t *trial) send(ctx context.Context, to string, body io.Reader) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "text/plain")
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", a.Status, b)
	}
	return err
}

// faultsAndWaves does the faults, and makes the web larger whenever little of it is left.
func (t *trial) faultsAndWaves(ctx context.Context) {
	over, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		told := false
		for over.Err() == nil {
			left, quiet := t.web.left()
			if left < t.pages/4 {
				if err := t.wave(over); err != nil && over.Err() == nil {
					t.say("TROUBLE: %v", err)
				}
			}
			if told = told && quiet > t.quietLimit; !told && quiet > t.quietLimit {
				told = true
				t.say("STALL: no contact for %v, %d pages left", quiet.Round(time.Second), left)
			}
			wait(over, time.Second)
		}
	})
	end := time.Now().Add(t.most)
	for range t.faults {
		if ctx.Err() != nil || time.Now().After(end) {
			break
		}
		t.faulter.one(ctx, t.draw[t.faulter.r.IntN(len(t.draw))])
	}
	stop()
	all.Wait()
	t.faulter.back.Wait()
}

// judge waits for the rest of the crawl, and compares.
func (t *trial) judge(ctx context.Context) error {
	t.say("no more faults")
	over := t.nodes.state().over
	t.faulter.settled(ctx, true)
	began, told := time.Now(), time.Now()
	for ctx.Err() == nil {
		left, quiet := t.web.left()
		if left == 0 || time.Since(began) > t.finalWait {
			break
		}
		if time.Since(told) > 15*time.Second {
			told = time.Now()
			t.say("%d pages left, the last contact was %v ago", left, quiet.Round(100*time.Millisecond))
		}
		wait(ctx, 200*time.Millisecond)
	}
	drained := t.drained(ctx)
	t.stop()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := t.web.record(t.dir); err != nil {
		return err
	}
	lost := t.web.lost(t.say)
	t.web.table(t.out, t.faulter.events)
	fmt.Fprintf(t.out, "faults %d, nodes that ended by themselves %d, crawlers %d, other troubles %d, in the end the frontier was empty: %v\n",
		len(t.faulter.events), t.nodes.state().deaths, over, t.faulter.troubles.Load(), drained)
	w := t.web
	w.mu.Lock()
	defer w.mu.Unlock()
	if lost+w.early+w.overlap+w.undone+over+t.nodes.state().deaths+int(t.faulter.troubles.Load()) > 0 || !drained {
		return errFailed
	}
	return nil
}

// drained waits until the frontier says that nothing is left, and reports whether it did.
func (t *trial) drained(ctx context.Context) bool {
	for i := range 300 {
		r, err := http.Get(t.nodes.urls[i%len(t.nodes.urls)] + "/v1/stats")
		if err == nil {
			var s struct{ Waiting, Leased, Scheduled, Pending *int64 }
			b, _ := io.ReadAll(r.Body)
			_ = r.Body.Close()
			if r.StatusCode == http.StatusOK {
				if err := json.Unmarshal(b, &s); err == nil && s.Waiting != nil && *s.Waiting == 0 && (s.Leased == nil || *s.Leased == 0) {
					return true
				}
			}
			if i == 299 {
				t.say("the frontier is not empty: %s", b)
			}
		}
		if wait(ctx, 200*time.Millisecond); ctx.Err() != nil {
			return false
		}
	}
	return false
}

// stop kills all processes.
func (t *trial) stop() {
	t.once.Do(func() {
		if t.faulter != nil {
			t.faulter.back.Wait()
		}
		all := t.fetchers
		if t.nodes != nil {
			all = slices.Concat(all, t.nodes.nodes)
		}
		for _, p := range all {
			if p.cmd != nil && p.cmd.Process != nil {
				p.kill()
			}
		}
		if t.site != nil {
			_ = t.site.Close()
		}
	})
}
