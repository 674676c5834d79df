// This file tests who takes part.

package enginetest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/fleet/peer"
)

// What was written is there when all servers have ended and are back.
func (start Start) kept(t *testing.T) {
	x := start.Three(t)
	one, err := x.All[0].Put(t.Context(), "k", []byte("1"), 0)
	ok(t, err)
	last, err := x.All[1].Append(t.Context(), 3, 0, []byte("r"))
	ok(t, err)
	x.close(t, 0, 1, 2)
	x.open(t, 2, 1, 0)
	e, err := x.All[2].Get(t.Context(), "k")
	ok(t, err)
	same(t, one, e.Revision)
	n, data, err := x.All[0].Last(t.Context(), 3)
	ok(t, err)
	same(t, last, n)
	same(t, "r", string(data))
}

// put writes an entry again and again until it is there.
func put(t *testing.T, e Engine, key, value string) {
	t.Helper()
	for {
		now, err := e.Get(t.Context(), key)
		if err == nil && string(now.Value) == value {
			return
		}
		if _, err = e.Put(t.Context(), key, []byte(value), now.Revision); err != nil && t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// A server that lost its folder must not vote again under its name. Once it is let in anew, it takes part.
func (start Start) lostFolder(t *testing.T) {
	x := start.Three(t)
	ctx := t.Context()
	put(t, x.All[0], "k", "1")
	last, err := x.All[1].Append(ctx, 3, 0, []byte("r"))
	ok(t, err)
	x.close(t, 1)
	ok(t, os.RemoveAll(x.Options[1].Dir))
	_, err = start.within(t, x.Options[1])
	says(t, err, "the fleet has begun")
	says(t, err, "frontier member -dir ITS-FOLDER n1="+x.Options[1].Peers["n1"])

	for range 2 { // once is enough
		ok(t, x.All[0].Admit(ctx, "n1", x.Options[1].Peers["n1"]))
	}
	x.open(t, 1)
	e, err := x.All[1].Get(ctx, "k")
	ok(t, err)
	same(t, "1", string(e.Value))

	x.close(t, 2) // two of three are enough again
	put(t, x.All[1], "k", "2")
	n, data, err := x.All[1].Last(ctx, 3)
	ok(t, err)
	same(t, last, n)
	same(t, "r", string(data))
	x.open(t, 2)
	start.fourth(t, x)
}

// fourth lets one more node in, and removes it.
func (start Start) fourth(t *testing.T, x *Trio) {
	ctx := t.Context()
	more := x.Options[0]
	more.Node, more.Dir, more.Peers = "n3", t.TempDir(), maps.Clone(more.Peers)
	more.Peers["n3"] = FreePort(t)
	_, err := start.within(t, more)
	says(t, err, "frontier member -dir ITS-FOLDER n3=")
	says(t, x.All[0].Admit(ctx, "n3", more.Peers["n1"]), "is the address of node n1")
	ok(t, x.All[0].Admit(ctx, "n3", FreePort(t))) // a wrong address
	ok(t, x.All[0].Admit(ctx, "n3", more.Peers["n3"]))
	remove := func(want bool) {
		t.Helper()
		found, err := x.All[0].Remove(ctx, "n3")
		ok(t, err)
		same(t, want, found)
	}
	remove(true) // what has not started can be removed
	ok(t, x.All[0].Admit(ctx, "n3", more.Peers["n3"]))
	e, err := start.within(t, more)
	ok(t, err)
	got, err := e.Get(ctx, "k")
	ok(t, err)
	same(t, "2", string(got.Value))
	remove(true)
	remove(false)
	_ = e.Close()
	got, err = x.All[2].Get(ctx, "k")
	ok(t, err)
	same(t, "2", string(got.Value))
}

// A server with an empty folder waits for all others: those that are there might be a minority.
func (start Start) emptyFolder(t *testing.T) {
	x := start.Three(t)
	x.close(t, 0, 1, 2)
	ok(t, os.RemoveAll(x.Options[1].Dir))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := start(ctx, x.Options[1])
	says(t, err, "not all of n0, n1, n2 are there")
	x.open(t, 0, 2) // and learns then that they have begun
	_, err = start.within(t, x.Options[1])
	says(t, err, "the fleet has begun")
}

func (start Start) oneAlone(t *testing.T) {
	o := peer.Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": FreePort(t)}, Dir: t.TempDir()}
	for _, value := range []string{"1", "2"} {
		e, err := start.within(t, o)
		ok(t, err)
		put(t, e, "k", value)
		ok(t, e.Close())
	}
}

// certify returns files of an authority, and of a certificate by it for an address and some uses, with its key.
func certify(t *testing.T, address string, uses ...x509.ExtKeyUsage) (cert, key, ca string) {
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		ok(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	ok(t, err)
	above := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(crand.Reader, above, above, authority.Public(), authority)
	ok(t, err)
	ca = write("ca.pem", "CERTIFICATE", der)
	above, err = x509.ParseCertificate(der)
	ok(t, err)
	own, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	ok(t, err)
	der, err = x509.CreateCertificate(crand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: uses}, above, own.Public(), authority)
	ok(t, err)
	cert = write("cert.pem", "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(own)
	ok(t, err)
	return cert, write("key.pem", "EC PRIVATE KEY", der), ca
}

// A certificate that the other machines would refuse ends the start. What keeps a fleet from beginning is said. With the right
// ones it begins.
func (start Start) certificates(t *testing.T) {
	o := peer.Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": FreePort(t), "b": FreePort(t)}, Dir: t.TempDir()}
	o.Cert, o.Key, _ = certify(t, "127.0.0.1")
	_, _, o.CA = certify(t, "127.0.0.1")
	_, err := o.TLS()
	says(t, err, "vouches for: x509: certificate signed by unknown authority")
	o.Cert, o.Key, o.CA = certify(t, "127.0.0.2")
	_, err = o.TLS()
	says(t, err, "at 127.0.0.1")
	o.Cert, o.Key, o.CA = certify(t, "127.0.0.1", x509.ExtKeyUsageServerAuth)
	_, err = o.TLS()
	says(t, err, "is not one of a client at 127.0.0.1")

	var said bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&said, nil))
	o.Cert, o.Key, o.CA = certify(t, "127.0.0.1")
	ctx, cancel := context.WithTimeout(t.Context(), peer.SayFirst+3*time.Second)
	defer cancel()
	_, err = start(ctx, o)
	says(t, err, "not all of a, b are there")
	same(t, true, strings.Contains(said.String(), "connection refused"))

	o.Logger = nil
	other := o
	other.Node, other.Dir = "b", t.TempDir()
	both := make(chan Engine)
	for _, o := range []peer.Options{o, other} {
		go func() {
			e, err := start.within(t, o)
			if err != nil {
				t.Error(err)
			}
			both <- e
		}()
	}
	for range 2 {
		if e := <-both; e != nil {
			defer e.Close()
		}
	}
}

func (start Start) addresses(t *testing.T) {
	for _, at := range []string{"127.0.0.1:65536", "127.0.0.1:0", "127.0.0.1:x", "127.0.0.1", ":1"} {
		_, err := start(t.Context(), peer.Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": at}, Dir: t.TempDir()})
		says(t, err, "want HOST:PORT")
	}
}
