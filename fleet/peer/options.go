// Package peer has what engines have in common whose servers live in the nodes: their options, and how a server with an
// empty folder begins.
package peer

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/internal/faults"
)

// Options configure a server.
type Options struct {
	// Fleet names the fleet: servers of another refuse to talk.
	Fleet string
	// Node is this node's name, one of Peers.
	Node string
	// Peers has the address, HOST:PORT, of each node's server. A fleet begins when all of them are
	// there; from then on a majority is enough, and Admit and Remove of the engine say who takes part. Three or five
	// are sensible.
	Peers map[string]string
	// Dir is a folder of this server alone. It is made if there is none.
	Dir string
	// Cert, Key and CA are files with which servers prove to each other that they belong to the fleet.
	// Without them, every process that reaches an address of Peers may do everything.
	Cert, Key, CA string
	// Quota is the size of the server's data in bytes beyond which it takes no more. Zero means
	// 8 GiB. What logs no longer need is used again.
	Quota int64
	// Logger gets warnings and errors. Nil means none.
	Logger *slog.Logger
}

// DefaultQuota is what a Quota of zero means.
const DefaultQuota = 8 << 30

// Check returns what is wrong with the options, and makes the folder if nothing is.
func (o *Options) Check() error {
	var wrong faults.List
	wrong.If(!fleet.IsName(o.Fleet) || o.Dir == "", "want a fleet, of letters, digits, dots, underscores and hyphens, and a folder")
	wrong.If(o.Peers[o.Node] == "", "node %q is none of %s", o.Node, o.Names())
	wrong.If(!o.Secure() && o.Cert+o.Key+o.CA != "", "want a certificate, its key and an authority, or none of them")
	for name, address := range o.Peers {
		wrong.If(!fleet.IsAddress(address), "node %s is at %q; want HOST:PORT", name, address)
	}
	if err := errors.Join(wrong...); err != nil {
		return err
	}
	return os.MkdirAll(o.Dir, 0o700)
}

// Secure reports whether there are certificates.
func (o *Options) Secure() bool { return o.Cert != "" && o.Key != "" && o.CA != "" }

// Names lists the nodes for messages.
func (o *Options) Names() string { return strings.Join(slices.Sorted(maps.Keys(o.Peers)), ", ") }

// List lists the nodes with their addresses, each behind a scheme.
func (o *Options) List(scheme string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(o.Peers)) {
		all = append(all, name+"="+scheme+o.Peers[name])
	}
	return strings.Join(all, ",")
}

// TLS returns how connections among the nodes are protected: nil if there are no certificates.
func (o *Options) TLS() (*tls.Config, error) {
	if o.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	b, err := os.ReadFile(o.CA)
	all := x509.NewCertPool()
	if err == nil && !all.AppendCertsFromPEM(b) {
		err = fmt.Errorf("there is no certificate in %s", o.CA)
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	host, _, _ := net.SplitHostPort(o.Peers[o.Node])
	b, _ = os.ReadFile(o.Cert)
	between := x509.NewCertPool()
	between.AppendCertsFromPEM(b)
	for as, use := range map[string]x509.ExtKeyUsage{"a server": x509.ExtKeyUsageServerAuth, "a client": x509.ExtKeyUsageClientAuth} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{DNSName: host, Roots: all, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
			return nil, fmt.Errorf("fleet: the certificate in %s is not one of %s at %s that %s vouches for: %w", o.Cert, as, host, o.CA, err)
		}
	}
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, RootCAs: all, ClientCAs: all, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12,
	}, nil
}
