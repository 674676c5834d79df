// This file begins a server, and gives it a name.
//
// JetStream knows the members of its groups by the names of their servers. So each folder has a name of its own, the
// node's with something random behind it, and a node whose disk was lost comes back under another. A new name would be
// let in by any majority, and count in it: so a server with an empty folder first runs without a store, takes no part in votes,
// and asks the others whether it may.

package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/seed-7440039f/frontier/fleet/peer"
	"github.com/seed-7440039f/frontier/internal/durablefs"
)

// nameFile is the file of a folder with the name of its server.
const nameFile = "name"

// randomLength is that of what is behind the @ of a name.
const randomLength = 8

func stageSubject(node string) string { return "fleet.stage." + token(node) }

// begin returns the name of the folder's server, once it may start.
func begin(ctx context.Context, o *Options) (name string, err error) {
	name, begun, err := identity(o)
	if err != nil || begun || len(o.Peers) == 1 {
		return name, err
	}
	x, err := serve(o, name, false)
	if err != nil {
		return "", err
	}
	defer x.close()
	b := o.Begin()
	if err := x.say(o, b.Stage); err != nil {
		return "", err
	}
	how, err := b.Wait(ctx, func(ctx context.Context, node, address string) (peer.Stage, error) {
		return x.ask(ctx, o, node, address)
	})
	if how == peer.Begun {
		err = x.join(ctx, o)
	}
	return name, err
}

// identity returns the name of the folder's server, and whether it has ever taken part. One that has not gets a new name,
// unless it may begin under the one that it has.
func identity(o *Options) (name string, begun bool, err error) {
	data := filepath.Join(o.Dir, server.JetStreamStoreDir)
	begun, err = exists(filepath.Join(data, systemAccount, "_js_", "_meta_", "peers.idx"))
	if err != nil {
		return "", false, err
	}
	rest, err := exists(data)
	alone := len(o.Peers) == 1
	switch {
	case err != nil:
		return "", false, err
	case begun && alone:
		return "", false, fmt.Errorf("%s belongs to a fleet of several machines: want the addresses of others, too", o.Dir)
	case rest && !begun && !alone && !o.Begins():
		return "", false, fmt.Errorf("%s has what a server stored, but not what it voted for: want an empty folder", o.Dir)
	}
	b, err := os.ReadFile(filepath.Join(o.Dir, nameFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", false, err
	}
	if name = string(b); name != "" && (begun || alone || o.Begins()) {
		return name, begun, nil
	}
	name = o.Node + "@" + strings.ToLower(rand.Text()[:randomLength])
	return name, false, durablefs.WriteFile(filepath.Join(o.Dir, nameFile), 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, name)
		return err
	})
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// say answers the others how far this server has come.
func (x *local) say(o *Options, stage func() peer.Stage) error {
	_, err := x.conn.Subscribe(stageSubject(o.Node), func(m *nats.Msg) { _ = m.Respond(o.Says(stage())) })
	return err
}

// ask asks another server how far it has come.
func (x *local) ask(ctx context.Context, o *Options, node, address string) (peer.Stage, error) {
	ctx, cancel := context.WithTimeout(ctx, peer.AskTime)
	defer cancel()
	m, err := x.conn.RequestWithContext(ctx, stageSubject(node), nil)
	if err != nil {
		if c, unreached := (&net.Dialer{}).DialContext(ctx, "tcp", address); unreached != nil {
			err = unreached
		} else {
			_ = c.Close()
		}
		return peer.Away, err
	}
	return o.Hears(m.Data)
}
