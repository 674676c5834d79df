// This file decides how a server with an empty folder begins.
//
// A member of a Raft group that has forgotten its votes must not vote again under its name: what a
// majority has acknowledged could be lost. So a server with an empty folder begins a fleet only with all
// others, each of which says that it has not begun either. If the fleet has begun, the server takes part
// if it was let in (Engine.Admit) and has never started.

package etcd

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/seed-7440039f/frontier/internal/durablefs"
)

const (
	// beginsName is the file of a folder that begins with all others: they have all been empty at once.
	// Once it has begun the file goes, so that a folder which lost the rest counts as empty.
	beginsName = "begins"
	// stagePath is where a server that has not begun says its stage.
	stagePath = "/frontier/stage"
	// membersPath is where etcd says who takes part.
	membersPath = "/members"

	askAgain = 200 * time.Millisecond
	askTime  = 2 * time.Second
	sayFirst = 5 * time.Second // who is missing
	sayAgain = time.Minute
)

// stage is how far a server has come.
type stage int

const (
	away  stage = iota // it does not answer
	empty              // its folder is empty
	ready              // it begins, as soon as all others do
	begun
)

// member is one of those who take part, as etcd shows it.
type member struct {
	ID   uint64   `json:"id"`
	Name string   `json:"name"` // empty before its first start
	URLs []string `json:"peerURLs"`
}

// begin completes the configuration of a server whose folder is empty, once it may start.
func (o *Options) begin(ctx context.Context, cfg *embed.Config) error {
	votes, err := os.ReadDir(filepath.Join(o.Dir, "member", "wal"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if slices.ContainsFunc(votes, func(f os.DirEntry) bool { return strings.HasSuffix(f.Name(), ".wal") }) {
		return nil
	}
	secure, err := o.TLS()
	if err != nil {
		return err
	}
	mark := filepath.Join(o.Dir, beginsName)
	mine := empty
	if _, err := os.Stat(mark); err == nil {
		mine = ready
	}
	stages := make(chan stage, 1) // the one that others see
	stages <- mine
	l, err := net.Listen("tcp", o.Peers[o.Node])
	if err != nil {
		return err
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	web := &http.Server{ReadHeaderTimeout: askTime, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != stagePath {
			http.NotFound(w, r)
			return
		}
		now := <-stages
		stages <- now
		_, _ = fmt.Fprint(w, int(now))
	})}
	go func() { _ = web.Serve(l) }()
	defer web.Close()
	others := &http.Client{Timeout: askTime, Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}}
	for say := time.Now().Add(sayFirst); ; {
		least, lists, missing := begun, [][]member{}, []string(nil)
		for node, address := range o.Peers {
			if node == o.Node {
				continue
			}
			s, members, err := ask(ctx, others, cfg.AdvertisePeerUrls[0].Scheme+"://"+address)
			if least = min(least, s); members != nil {
				lists = append(lists, members)
			}
			if err != nil {
				missing = append(missing, fmt.Sprintf("%s: %v", node, err))
			}
		}
		if o.Logger != nil && len(missing) > 0 && time.Now().After(say) {
			o.Logger.Warn("this folder is new, and waits for all machines of -fleet-peers", "error", strings.Join(missing, "; "))
			say = time.Now().Add(sayAgain)
		}
		switch {
		case mine == ready && (len(lists) > 0 || least >= ready):
			return nil
		case len(lists) > 0:
			return o.join(cfg, lists)
		case mine == empty && least >= empty:
			if err := durablefs.WriteFile(mark, 0o600, func(io.Writer) error { return nil }); err != nil {
				return err
			}
			mine = ready
			<-stages
			stages <- mine
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("this folder is new, and not all of %s are there: %w", o.peers(), context.Cause(ctx))
		case <-time.After(askAgain):
		}
	}
}

// ask asks another server how far it has come, and who takes part if it has begun.
func ask(ctx context.Context, client *http.Client, url string) (s stage, members []member, err error) {
	if b, err := get(ctx, client, url+stagePath); err == nil {
		if _, err := fmt.Sscan(string(b), &s); err != nil || s >= begun {
			return away, nil, err
		}
		return s, nil, nil
	}
	b, err := get(ctx, client, url+membersPath)
	if err != nil || json.Unmarshal(b, &members) != nil || len(members) == 0 {
		return away, nil, err
	}
	return begun, members, nil
}

func get(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	a, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return nil, errors.New(a.Status)
	}
	return io.ReadAll(io.LimitReader(a.Body, 1<<20))
}

// join makes the server one of those who take part already, if they have let it in.
func (o *Options) join(cfg *embed.Config, lists [][]member) error {
	at := cfg.AdvertisePeerUrls[0].String()
	started := map[uint64]bool{} // some lists may be old
	for _, list := range lists {
		for _, m := range list {
			started[m.ID] = started[m.ID] || m.Name != ""
		}
	}
	for _, list := range lists {
		var all []string
		in := false
		for _, m := range list {
			name := m.Name
			switch mine := len(m.URLs) > 0 && m.URLs[0] == at && !started[m.ID]; {
			case mine:
				in, name = true, o.Node
			case name == "":
				name = fmt.Sprintf("%x", m.ID)
			}
			for _, url := range m.URLs {
				all = append(all, name+"="+url)
			}
		}
		if in {
			cfg.InitialCluster, cfg.ClusterState = strings.Join(all, ","), embed.ClusterStateFlagExisting
			return nil
		}
	}
	return fmt.Errorf("the fleet has begun, and %s is empty: either it is not this machine's folder, or its disk was lost. A new folder takes part once another machine has let it in, where you type: frontier member -dir ITS-FOLDER %s=%s", o.Dir, o.Node, o.Peers[o.Node])
}
