// This file begins a server with an empty folder: until it may start, it says its stage over HTTP where etcd will
// listen. If the fleet has begun, the server takes part if it was let in (Engine.Admit) and has never started.

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

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/seed-7440039f/frontier/fleet/peer"
)

const (
	// stagePath is where a server that has not begun says its stage.
	stagePath = "/frontier/stage"
	// membersPath is where etcd says who takes part.
	membersPath = "/members"
)

// member is one of those who take part, as etcd shows it.
type member struct {
	ID   uint64   `json:"id"`
	Name string   `json:"name"` // empty before its first start
	URLs []string `json:"peerURLs"`
}

// begin completes the configuration of a server whose folder is empty, once it may start.
func begin(ctx context.Context, o *Options, cfg *embed.Config) error {
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
	b := o.Begin()
	l, err := net.Listen("tcp", o.Peers[o.Node])
	if err != nil {
		return err
	}
	if secure != nil {
		l = tls.NewListener(l, secure)
	}
	mux := http.NewServeMux()
	mux.HandleFunc(stagePath, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(o.Says(b.Stage())) })
	web := &http.Server{ReadHeaderTimeout: peer.AskTime, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: mux}
	go func() { _ = web.Serve(l) }()
	defer web.Close()
	others := &http.Client{Timeout: peer.AskTime, Transport: &http.Transport{TLSClientConfig: secure, DisableKeepAlives: true}}
	lists := map[string][]member{} // by who said so
	how, err := b.Wait(ctx, func(ctx context.Context, node, address string) (s peer.Stage, err error) {
		s, lists[node], err = ask(ctx, o, others, cfg.AdvertisePeerUrls[0].Scheme+"://"+address)
		return s, err
	})
	if how == peer.Begun {
		return join(o, cfg, lists)
	}
	return err
}

// ask asks another server how far it has come, and who takes part if it has begun.
func ask(ctx context.Context, o *Options, client *http.Client, url string) (s peer.Stage, members []member, err error) {
	if b, err := get(ctx, client, url+stagePath); err == nil {
		s, err = o.Hears(b)
		return min(s, peer.Ready), nil, err // one that has begun does not answer here
	}
	b, err := get(ctx, client, url+membersPath)
	if err != nil || json.Unmarshal(b, &members) != nil || len(members) == 0 {
		return peer.Away, nil, err
	}
	return peer.Begun, members, nil
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
func join(o *Options, cfg *embed.Config, lists map[string][]member) error {
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
	return o.Stranger()
}
