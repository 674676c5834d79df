// This file lets crawlers that know nothing of this program crawl the web: they get the addresses of the nodes, and
// the web as an HTTP proxy, and are never started again.

package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// anyNode is a host name that has the addresses of all nodes.
const anyNode = "frontier.test"

// newForeign prepares a process of o.fetch, a command for sh. Its environment says where the nodes and the web are.
func newForeign(o options, label string, c *cluster, proxy, dir string, say func(string, ...any)) (*process, error) {
	log, err := os.Create(filepath.Join(dir, label+".log"))
	if err != nil {
		return nil, err
	}
	hosts := filepath.Join(dir, "hosts")
	lines, port := "127.0.0.1 localhost\n", ""
	for _, at := range c.grpc {
		address, p, _ := strings.Cut(at, ":")
		lines, port = lines+address+" "+anyNode+"\n", p
	}
	err = os.WriteFile(hosts, []byte(lines), 0o666)
	return &process{
		name: label, log: log,
		start: func() *exec.Cmd {
			cmd := exec.Command("sh", "-c", "exec "+o.fetch)
			cmd.Env = append(os.Environ(), "frontier="+o.binary, "nodes="+strings.Join(c.urls, ","), "grpc="+strings.Join(c.grpc, ","),
				"hosts="+hosts, "name="+anyNode+":"+port, "proxy="+proxy, "folder="+dir)
			return cmd
		},
		died: func(err error) {
			c.mu.Lock()
			c.now.over++
			c.mu.Unlock()
			say("crawler %s ended by itself: %v", label, err)
		},
	}, err
}

// page answers a crawler that uses the web as a proxy.
func (w *web) page(a http.ResponseWriter, r *http.Request) {
	id, ok := w.pageOf(r.URL.String())
	if r.URL.Path == "/robots.txt" { // a contact like any other
		var host int
		_, err := fmt.Sscanf(r.URL.Host, "h%d.example", &host)
		id, ok = -1-host, err == nil && host < len(w.hosts)
	}
	if !ok {
		w.say("WEB: %s is no page", r.URL)
		http.NotFound(a, r)
		return
	}
	now := time.Now()
	c, takes, links := w.begin(id, visit{URL: r.URL.String(), Fetcher: r.UserAgent(), LeasedAt: now, Until: now.Add(time.Hour)})
	time.Sleep(takes)
	w.end(c, r.Context().Err() == nil)
	if id < 0 {
		http.NotFound(a, r)
		return
	}
	a.Header().Set("Content-Type", "text/html")
	fmt.Fprintf(a, "<title>%s</title>\n", r.URL)
	for _, l := range links {
		fmt.Fprintf(a, "<a href=%q>%s</a>\n", l, l)
	}
}
