// Command cost measures what a fleet of three machines costs beside one server, all on this machine: the CPU
// time of its processes for a page, for a URL and while nothing happens, and their memory. The clients' is not
// counted. It works on Linux.
//
//	go run ./fleet/cost
package main

import (
	"bytes"
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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	hosts    = 400
	batch    = 500 // URLs of a request
	atOnce   = 32  // leases of a request
	workers  = 16
	patience = time.Minute
)

var (
	pages  = flag.Int("pages", 8000, "how many `pages` are fetched for each figure")
	urls   = flag.Int("urls", 60000, "how many `URLs` are added")
	links  = flag.Int("links", 2, "how many new `links` a page has")
	idle   = flag.Duration("idle", 30*time.Second, "how long nothing happens")
	engine = flag.String("engine", "etcd", "the `engine` that the machines of a fleet share: etcd or nats")
	only   = flag.String("only", "", "one `row` of the table; empty: all")
)

// bench is a server or a fleet.
type bench struct {
	nodes []*exec.Cmd
	at    []string
	from  time.Duration // CPU time at the beginning of a measurement
	began time.Time
	next  atomic.Int64 // of a new URL
}

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "cost:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "cost")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "frontier")
	if b, err := exec.Command("go", "build", "-o", binary, "github.com/seed-7440039f/frontier/cmd/frontier").CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, b)
	}
	fmt.Print("| | idle, % of a core | MB of a process | µs a URL added | µs a page, pages/s | the same, links elsewhere | ms and µs of one lease and its end | through another machine |\n|---|---|---|---|---|---|---|---|\n")
	for _, x := range []struct {
		name              string
		nodes, partitions int
	}{{"one server", 1, 0}, {"a fleet", 3, 1}, {"4 partitions", 3, 4}, {"12 partitions", 3, 12}} {
		if *only != "" && *only != x.name {
			continue
		}
		if err := measure(x.name, binary, filepath.Join(dir, strings.ReplaceAll(x.name, " ", "-")), x.nodes, x.partitions); err != nil {
			return fmt.Errorf("%s: %w", x.name, err)
		}
	}
	return nil
}

func measure(name, binary, dir string, nodes, partitions int) error {
	b, err := begin(binary, dir, nodes, partitions)
	defer b.end()
	if err != nil {
		return err
	}
	if partitions > 1 {
		time.Sleep(75 * time.Second) // each machine gets its share after a minute
	}
	b.start()
	time.Sleep(*idle)
	still, most := b.took().Seconds()/time.Since(b.began).Seconds()*100, b.memory()
	b.start()
	err = b.each(*urls/batch, func(i, node int) error { return b.add(node, batch) })
	added := b.took().Seconds() * 1e6 / float64(*urls)
	if err != nil {
		return err
	}
	same, err := b.fetch(func(host string) string { return host })
	if err != nil {
		return err
	}
	elsewhere, err := b.fetch(func(string) string { return hostOf(rand.IntN(hosts)) })
	if err != nil {
		return err
	}
	owner, err := b.owner()
	if err != nil {
		return err
	}
	direct, err := b.alone(owner)
	through := "-"
	if err == nil && nodes > 1 {
		through, err = b.alone((owner + 1) % nodes)
	}
	if err == nil {
		fmt.Printf("| %s | %.1f | %d | %.1f | %s | %s | %s | %s |\n", name, still, most>>20, added, same, elsewhere, direct, through)
	}
	return err
}

func hostOf(n int) string { return fmt.Sprintf("www.site%d.example", n) }

// begin starts the processes, and waits until all answer.
func begin(binary, dir string, nodes, partitions int) (*bench, error) {
	b := &bench{}
	ports := make([]int, 2*nodes)
	for i := range ports {
		for tries := 0; ports[i] == 0; tries++ { // below those of outgoing connections
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000)))
			if err != nil && tries > 1000 {
				return b, err
			} else if err != nil {
				continue
			}
			ports[i] = l.Addr().(*net.TCPAddr).Port
			_ = l.Close()
		}
	}
	var peers []string
	for i := range nodes {
		peers = append(peers, fmt.Sprintf("n%d=127.0.0.1:%d", i, ports[nodes+i]))
	}
	for i := range nodes {
		at := fmt.Sprintf("127.0.0.1:%d", ports[i])
		words := []string{"serve", "-quiet", "-dir", filepath.Join(dir, strconv.Itoa(i)), "-http", at, "-grpc", "off", "-delay", "1ms", "-memory", "1G"}
		if partitions > 0 {
			words = append(words, "-fleet", "cost", "-node", fmt.Sprint("n", i), "-fleet-peers", strings.Join(peers, ","), "-fleet-partitions", strconv.Itoa(partitions), "-fleet-engine", *engine)
		}
		cmd := exec.Command(binary, words...)
		if err := cmd.Start(); err != nil {
			return b, err
		}
		b.nodes, b.at = append(b.nodes, cmd), append(b.at, "http://"+at)
	}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		ready := slices.IndexFunc(b.at, func(at string) bool {
			a, err := http.Get(at + "/readyz")
			if err == nil {
				_ = a.Body.Close()
			}
			return err != nil || a.StatusCode != http.StatusOK
		}) < 0
		if ready {
			return b, nil
		}
		if time.Now().After(end) {
			return b, errors.New("not ready after a minute")
		}
	}
}

func (b *bench) end() {
	for _, p := range b.nodes {
		_ = p.Process.Kill()
		_ = p.Wait()
	}
}

// stat returns a field of a process, and those behind it (proc(5)).
func stat(p *exec.Cmd, field int) []string {
	all, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Process.Pid))
	return strings.Fields(string(all[bytes.LastIndexByte(all, ')')+2:]))[field-3:]
}

func (b *bench) used() (all time.Duration) {
	for _, p := range b.nodes {
		for _, ticks := range stat(p, 14)[:2] { // utime, stime, in hundredths of a second
			n, _ := strconv.ParseInt(ticks, 10, 64)
			all += time.Duration(n) * 10 * time.Millisecond
		}
	}
	return all
}

// memory returns the resident memory of the largest process.
func (b *bench) memory() (most int) {
	for _, p := range b.nodes {
		n, _ := strconv.Atoi(stat(p, 24)[0])
		most = max(most, n*os.Getpagesize())
	}
	return most
}

func (b *bench) start()              { b.from, b.began = b.used(), time.Now() }
func (b *bench) took() time.Duration { return b.used() - b.from }

// each calls fn n times, from several goroutines, with the nodes in turn.
func (b *bench) each(n int, fn func(i, node int) error) error {
	var all sync.WaitGroup
	var i atomic.Int64
	errs := make([]error, workers)
	for w := range workers {
		all.Go(func() {
			for errs[w] == nil {
				at := int(i.Add(1)) - 1
				if at >= n {
					return
				}
				if errs[w] = fn(at, at%len(b.at)); errs[w] == errEnough {
					errs[w] = nil
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (b *bench) ask(node int, path, kind, body string, into any) error {
	q, err := http.NewRequest("POST", b.at[node]+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", kind)
	q.Header.Set("Accept", kind)
	a, err := client.Do(q)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err == nil && (a.StatusCode != http.StatusOK || bytes.Contains(text, []byte(`"error"`))) {
		err = fmt.Errorf("%s: %s: %.300s", path, a.Status, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

var client = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: workers}}

const lines = "application/x-ndjson"

func (b *bench) add(node, n int) error {
	var body strings.Builder
	for range n {
		u := b.next.Add(1)
		fmt.Fprintf(&body, `{"url":"http://%s/%d"}`+"\n", hostOf(int(u%hosts)), u)
	}
	return b.ask(node, "/v1/urls", lines, body.String(), nil)
}

type leases struct {
	Leases []struct{ Lease, Host string }
}

// fetch takes leases and ends them, with new links to hosts that to names.
func (b *bench) fetch(to func(host string) string) (string, error) {
	b.start()
	var n atomic.Int64
	err := b.each(1<<30, func(_, node int) error {
		if n.Load() >= int64(*pages) {
			return errEnough
		}
		var got leases
		if err := b.ask(node, "/v1/leases", "application/json", fmt.Sprintf(`{"hosts":%d,"max":%d,"wait_s":5}`, atOnce, atOnce), &got); err != nil || len(got.Leases) == 0 {
			return err
		}
		var body strings.Builder
		for _, l := range got.Leases {
			fmt.Fprintf(&body, `{"lease":%q,"add":[`, l.Lease)
			for i := range *links {
				fmt.Fprintf(&body, `%s{"url":"http://%s/%d"}`, ","[:min(i, 1)], to(l.Host), b.next.Add(1))
			}
			body.WriteString("]}\n")
		}
		n.Add(int64(len(got.Leases)))
		return b.ask(node, "/v1/done", lines, body.String(), nil)
	})
	took, done := time.Since(b.began).Seconds(), float64(n.Load())
	return fmt.Sprintf("%.0f, %.0f", b.took().Seconds()*1e6/done, done/took), err
}

var errEnough = errors.New("enough")

// owner returns the machine that has the first partition.
func (b *bench) owner() (int, error) {
	if len(b.at) == 1 {
		return 0, nil
	}
	a, err := http.Get(b.at[0] + "/v1/fleet")
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	var s struct{ Partitions []struct{ Owner string } }
	if err := json.NewDecoder(a.Body).Decode(&s); err != nil || len(s.Partitions) == 0 {
		return 0, fmt.Errorf("/v1/fleet: %w", err)
	}
	return strconv.Atoi(strings.TrimPrefix(s.Partitions[0].Owner, "n"))
}

// alone takes single leases of a partition's hosts and ends them, one after the other, at one machine.
func (b *bench) alone(node int) (string, error) {
	b.start()
	const n = 400
	for range n {
		var got leases
		err := b.ask(node, "/v1/leases", "application/json", `{"wait_s":5}`, &got)
		if err != nil || len(got.Leases) == 0 {
			return "", fmt.Errorf("no lease: %w", err)
		}
		if err := b.ask(node, "/v1/leases/"+got.Leases[0].Lease+"/done", "application/json", `{}`, nil); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%.1f, %.0f", time.Since(b.began).Seconds()*1000/n, b.took().Seconds()*1e6/n), nil
}
