// This file starts, signals and starts again the processes under test, and reads the nodes' logs as far as
// faults depend on them: who owns the frontier, and who has joined.

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// process is a process that is started again and again with the same arguments. One goroutine uses it.
type process struct {
	name  string
	log   *os.File
	start func() *exec.Cmd
	lines func(line string) // called with each line of output; may be nil
	died  func(err error)   // called when it ends by itself

	cmd   *exec.Cmd
	ended chan struct{} // closed when cmd has ended
	asked atomic.Bool   // to end
}

func (p *process) begin() error {
	cmd := p.start()
	out := &splitter{log: p.log, lines: p.lines}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended = cmd, ended
	p.asked.Store(false)
	go func() {
		err := cmd.Wait()
		asked := p.asked.Load()
		close(ended)
		if !asked && p.died != nil {
			p.died(err)
		}
	}()
	return nil
}

// kill ends it at once.
func (p *process) kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Signal(kill)
	<-p.ended
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) signal(s os.Signal) { _ = p.cmd.Process.Signal(s) }

// splitter writes output to a log, and passes it on by lines.
type splitter struct {
	log   *os.File
	lines func(string)
	rest  []byte
}

func (s *splitter) Write(b []byte) (int, error) {
	if s.lines != nil {
		s.rest = append(s.rest, b...)
		for {
			i := bytes.IndexByte(s.rest, '\n')
			if i < 0 {
				break
			}
			s.lines(string(s.rest[:i]))
			s.rest = s.rest[i+1:]
		}
	}
	return s.log.Write(b)
}

// cluster is the three nodes.
type cluster struct {
	engine  string
	clocks  *os.File
	nodes   []*process
	urls    []string
	folders []string
	peers   []string // NAME=HOST:PORT
	grpc    []string // HOST:PORT, for crawlers of others
	links   *links   // nil: none are cut

	mu  sync.Mutex
	now state // guarded by mu
}

// state is what the nodes' logs say.
type state struct {
	owner  int // -1: none that is known
	joined [nodeCount]bool
	causes [nodeCount]string // the latest line of each that may say why it ends
	deaths int               // of nodes that ended by themselves
	warned int               // how often clocks differed, or were not known
	over   int               // crawlers of others that ended by themselves
}

const (
	fleetTTL  = 10 * time.Second
	leaseTime = 15 * time.Second
	maxLease  = 30 * time.Second
	nodeCount = 3
)

// newCluster prepares the nodes in dir.
func newCluster(o options, dir string, l *links, say func(string, ...any)) (*cluster, error) {
	ports, err := freePorts(2*nodeCount + 1)
	if err != nil {
		return nil, err
	}
	c := &cluster{engine: o.engine, links: l, now: state{owner: -1}}
	if c.clocks, err = os.Create(filepath.Join(dir, "clocks")); err == nil {
		err = c.clocks.Truncate(8 * nodeCount)
	}
	if err != nil {
		return nil, err
	}
	address := func(i, port int) string {
		if l != nil {
			return fmt.Sprintf("%s:%d", l.address(i), port)
		}
		if o.fetch != "" {
			return fmt.Sprintf("127.0.0.%d:%d", 11+i, port)
		}
		return fmt.Sprintf("127.0.0.1:%d", port)
	}
	for i := range nodeCount {
		name, at := nameOf(i), address(i, ports[nodeCount+i])
		c.peers = append(c.peers, name+"="+address(i, ports[i]))
		folder := filepath.Join(dir, name, "node")
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return nil, err
		}
		log, err := os.Create(filepath.Join(dir, name+".log"))
		if err != nil {
			return nil, err
		}
		grpc := "off"
		if o.fetch != "" {
			grpc = address(i, ports[2*nodeCount])
			c.grpc = append(c.grpc, grpc)
		}
		c.urls, c.folders = append(c.urls, "http://"+at), append(c.folders, folder)
		c.nodes = append(c.nodes, &process{
			name: name, log: log,
			start: func() *exec.Cmd {
				words := []string{o.binary, "serve", "-fleet", "faults", "-node", name, "-fleet-peers", strings.Join(c.peers, ","), "-dir", folder, "-http", at,
					"-grpc", grpc, "-delay", delay.String(), "-lease-time", leaseTime.String(), "-max-lease", maxLease.String(), "-fleet-ttl", fleetTTL.String(), "-memory", "1G", "-fleet-partitions", strconv.Itoa(o.partitions), "-fleet-engine", o.engine}
				cmd := exec.Command(words[0], words[1:]...)
				if l != nil {
					cmd = l.within(i, append(words, "-insecure", "-names", "*")...)
				}
				cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d%s", clockFile, i, c.clocks.Name()))
				return cmd
			},
			lines: func(line string) { c.read(i, line, say) },
			died: func(err error) {
				c.gone(i)
				c.mu.Lock()
				c.now.deaths++
				c.mu.Unlock()
				say("TROUBLE: node %s ended by itself: %v", name, err)
			},
		})
	}
	return c, nil
}

// read follows a node's log.
func (c *cluster) read(i int, line string, say func(string, ...any)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case strings.Contains(line, "fleet: partition open"):
		c.now.owner = i
		_, about, _ := strings.Cut(line, "partition=0 ")
		say("node %s owns the frontier: %s", c.nodes[i].name, about)
	case strings.Contains(line, "fleet: partition given up"), strings.Contains(line, "fleet: session ended"):
		if c.now.owner == i {
			c.now.owner = -1
		}
		_, about, _ := strings.Cut(line, "msg=")
		say("node %s: %s", c.nodes[i].name, about)
	case strings.Contains(line, "msg=joined"):
		c.now.joined[i], c.now.causes[i] = true, ""
	case strings.Contains(line, "no space left on device"), strings.Contains(line, "the clock of node"):
		if c.now.causes[i] = line; strings.Contains(line, "clocks differ") {
			c.now.warned++
		}
	case strings.Contains(line, "whether a clock is right is not known"):
		c.now.warned++
	case strings.Contains(line, "panic:"), strings.Contains(line, "DATA RACE"), strings.Contains(line, "level=ERROR") && !strings.Contains(line, c.engine+":"):
		say("node %s: %s", c.nodes[i].name, line)
	}
}

func (c *cluster) kill(i int) {
	c.nodes[i].kill()
	c.gone(i)
}

func (c *cluster) gone(i int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now.joined[i], c.now.causes[i] = false, ""
	if c.now.owner == i {
		c.now.owner = -1
	}
}

// admit has another node let a node in that has an empty folder.
func (c *cluster) admit(i int) error {
	name, at, _ := strings.Cut(c.peers[i], "=")
	other := (i + 1 + rand.IntN(len(c.urls)-1)) % len(c.urls)
	a, err := http.Post(c.urls[other]+"/v1/fleet?"+url.Values{"admit": {name}, "at": {at}}.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(a.Body)
		return fmt.Errorf("%s: %s", a.Status, b)
	}
	return nil
}

func (c *cluster) state() state {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// freePorts finds unused ports of loopback, below those that systems give to outgoing connections:
// a node must get its own again after a while.
func freePorts(n int) (ports []int, err error) {
	for tries := 0; len(ports) < n; tries++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 12000+rand.IntN(20000)))
		if err == nil {
			defer l.Close()
			ports = append(ports, l.Addr().(*net.TCPAddr).Port)
		} else if tries > 1000 {
			return nil, err
		}
	}
	return ports, nil
}

// newFetcher prepares a fetcher's process: this program once more.
func newFetcher(order fetcherOrder, dir string, say func(string, ...any)) (*process, error) {
	b, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, order.Name+".log"))
	if err != nil {
		return nil, err
	}
	return &process{
		name: order.Name, log: log,
		start: func() *exec.Cmd {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), asFetcher+"="+string(b))
			return cmd
		},
		died: func(err error) { say("TROUBLE: fetcher %s ended by itself: %v", order.Name, err) },
	}, nil
}
