// Command split crawls hosts of its own on loopback with three nodes in one process,
// each with a frontier and a crawler. A host splitter gives each host to one of them:
// every page is fetched once, and no host is contacted by two nodes.
//
//	go run ./examples/split
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/partition"
	"github.com/seed-7440039f/frontier/examples/basic/web"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// node is one of the nodes: in a real fleet, a process.
type node struct {
	name     string
	frontier *frontier.Frontier
	router   *partition.Router
	crawler  *crawler.Crawler

	mu       sync.Mutex
	hosts    map[string]int // guarded by mu; pages by host
	received int            // guarded by mu; entries that others sent
}

// receive is what a node does with the entries that another sends it. Between
// processes it would be the handler of a request. What the frontier knows it skips.
func (n *node) receive(ctx context.Context, entries []frontier.Entry) error {
	n.mu.Lock()
	n.received += len(entries)
	n.mu.Unlock()
	_, err := n.frontier.Add(ctx, entries...)
	return err
}

// keep is between a page's links and the frontier.
func (n *node) keep(ctx context.Context, p *crawler.Page) (err error) {
	if p.Status == http.StatusOK {
		n.mu.Lock()
		n.hosts[p.Lease.Host]++
		n.mu.Unlock()
	}
	p.Add, err = n.router.Keep(ctx, p.Add)
	return err
}

func run(ctx context.Context, out io.Writer) (err error) {
	var sites []web.Host
	for i := range 9 {
		sites = append(sites, web.Host{Name: fmt.Sprintf("host%d.example", i+1), Pages: 3 + i})
	}
	w := web.Start(sites...)
	defer w.Close()
	names := []string{"node-a", "node-b", "node-c"}
	nodes := map[string]*node{}
	send := func(ctx context.Context, to string, entries []frontier.Entry) error {
		return nodes[to].receive(ctx, entries)
	}
	for _, name := range names {
		n, err := start(ctx, name, partition.NewNodes(names...), send, w)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, n.frontier.Close()) }()
		nodes[name] = n
	}

	// One node is given a single seed; the others get their work from it.
	first := nodes[partition.NewNodes(names...).Owner("host1.example")]
	if _, err := first.crawler.Seed(ctx, "http://host1.example/1"); err != nil {
		return err
	}
	crawling, stop := context.WithCancel(ctx)
	defer stop()
	var running sync.WaitGroup
	for _, n := range nodes {
		running.Go(func() { _ = n.crawler.Run(crawling) }) // it ends by stop
	}
	var quiet partition.Quiet
	for ctx.Err() == nil {
		var all []frontier.Stats
		for _, n := range nodes {
			all = append(all, n.frontier.Stats())
		}
		if quiet.Look(all...) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	running.Wait()
	report(out, nodes, w)
	return ctx.Err()
}

// start makes a node.
func start(ctx context.Context, name string, s partition.Splitter, send func(context.Context, string, []frontier.Entry) error, w *web.Web) (*node, error) {
	n := &node{name: name, hosts: map[string]int{}}
	var err error
	if n.router, err = partition.New(partition.Options{Self: name, Splitter: s, Send: send}); err != nil {
		return nil, err
	}
	n.frontier, err = frontier.Open(ctx, frontier.Options{KeepOpen: true, Delay: frontier.FixedDelay(10 * time.Millisecond)})
	if err != nil {
		return nil, err
	}
	f, err := fetch.New(fetch.Options{Dial: w.Dial, Networks: web.Networks})
	if err == nil {
		n.crawler, err = crawler.New(n.frontier, crawler.Options{Workers: 4, Fetcher: f, OnPage: n.keep, RobotsWait: time.Millisecond})
	}
	return n, err
}

// report prints what each node did, as the nodes and the server saw it.
func report(out io.Writer, nodes map[string]*node, w *web.Web) {
	owners := map[string]int{} // nodes that contacted a host
	pages, most := 0, 0
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		n := nodes[name]
		fetched := 0
		var hosts []string
		for h, k := range n.hosts {
			owners[h]++
			fetched += k
			hosts = append(hosts, h)
		}
		slices.Sort(hosts)
		from := "alone"
		if n.received > 0 {
			from = "and got links from others"
		}
		fmt.Fprintf(out, "%s fetched %d pages of %v, %s\n", name, fetched, hosts, from)
		pages += fetched
	}
	for _, k := range owners {
		most = max(most, k)
	}
	twice := 0
	for url, k := range w.Asks() {
		if k > 1 {
			fmt.Fprintln(out, "asked for more than once:", url)
			twice++
		}
	}
	fmt.Fprintf(out, "%d pages of %d hosts; nodes for each host at most: %d; URLs asked for twice: %d\n", pages, len(owners), most, twice)
}
