package etcd

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func start(t *testing.T, o Options) (*Engine, error) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return Start(ctx, o)
}

// A server that lost its folder must not vote again under its name. Once it is let in anew, it takes part.
func TestALostFolderIsReplaced(t *testing.T) {
	all, options := three(t)
	one, err := all[0].Put(t.Context(), "k", []byte("1"), 0)
	require.NoError(t, err)
	require.NoError(t, all[1].Close())
	all[1] = nil
	require.NoError(t, os.RemoveAll(filepath.Join(options[1].Dir, "member", "wal"))) // all else is there
	_, err = start(t, options[1])
	require.ErrorContains(t, err, "the fleet has begun")
	require.NoError(t, os.RemoveAll(options[1].Dir))
	_, err = start(t, options[1])
	require.ErrorContains(t, err, "frontier member -dir ITS-FOLDER n1="+options[1].Peers["n1"])

	for range 2 { // once is enough
		require.NoError(t, all[0].Admit(t.Context(), "n1", options[1].Peers["n1"]))
	}
	all[1], err = start(t, options[1])
	require.NoError(t, err)
	e, err := all[1].Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, one, e.Revision)

	require.NoError(t, all[2].Close()) // two of three are enough again
	all[2] = nil
	for _, err = all[1].Put(t.Context(), "k", []byte("2"), one); err != nil; _, err = all[1].Put(t.Context(), "k", []byte("2"), one) {
		if e, _ := all[0].Get(t.Context(), "k"); string(e.Value) == "2" {
			break
		}
	}
	all[2], err = start(t, options[2])
	require.NoError(t, err)

	_, err = start(t, options[2])
	require.ErrorContains(t, err, "another process uses")

	more := options[0] // a fourth
	more.Node, more.Dir = "n3", t.TempDir()
	more.Peers = map[string]string{"n3": freePort(t)}
	for node, at := range options[0].Peers {
		more.Peers[node] = at
	}
	_, err = start(t, more)
	require.ErrorContains(t, err, "frontier member -dir ITS-FOLDER n3=")
	require.ErrorContains(t, all[0].Admit(t.Context(), "n3", options[0].Peers["n1"]), "is the address of node n1")
	members := func() int {
		list, err := all[0].client.MemberList(t.Context())
		require.NoError(t, err)
		return len(list.Members)
	}
	require.NoError(t, all[0].Admit(t.Context(), "n3", freePort(t))) // a wrong address
	require.NoError(t, all[0].Admit(t.Context(), "n3", more.Peers["n3"]))
	require.Equal(t, 4, members())
	found, err := all[0].Remove(t.Context(), "n3")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, 3, members(), "what has not started can be removed")
	require.NoError(t, all[0].Admit(t.Context(), "n3", more.Peers["n3"]))
	fourth, err := start(t, more)
	require.NoError(t, err)
	e, err = fourth.Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "2", string(e.Value))
	found, err = all[0].Remove(t.Context(), "n3")
	require.NoError(t, err)
	require.True(t, found)
	found, err = all[0].Remove(t.Context(), "n3")
	require.NoError(t, err)
	require.False(t, found)
	_ = fourth.Close()
	e, err = all[2].Get(t.Context(), "k")
	require.NoError(t, err)
	require.Equal(t, "2", string(e.Value))
}

// A server with an empty folder waits for all others: those that are there might be a minority.
func TestAnEmptyFolderWaitsForAll(t *testing.T) {
	all, options := three(t)
	for i := range all {
		require.NoError(t, all[i].Close())
		all[i] = nil
	}
	require.NoError(t, os.RemoveAll(options[1].Dir))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := Start(ctx, options[1])
	require.ErrorContains(t, err, "not all of n0, n1, n2 are there")

	var wg sync.WaitGroup // and learns then that they have begun
	for _, i := range []int{0, 2} {
		wg.Go(func() { all[i], _ = start(t, options[i]) })
	}
	wg.Wait()
	require.NotNil(t, all[0])
	require.NotNil(t, all[2])
	_, err = start(t, options[1])
	require.ErrorContains(t, err, "the fleet has begun")
}

func TestOneAloneBegins(t *testing.T) {
	e, err := start(t, Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": freePort(t)}, Dir: t.TempDir()})
	require.NoError(t, err)
	require.NoError(t, e.Close())
}

// vouched returns files of an authority, and of a certificate by it for an address and some uses, with its key.
func vouched(t *testing.T, address string, uses ...x509.ExtKeyUsage) (cert, key, ca string) {
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	authority, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	require.NoError(t, err)
	above := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(crand.Reader, above, above, authority.Public(), authority)
	require.NoError(t, err)
	ca = write("ca.pem", "CERTIFICATE", der)
	above, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	own, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	require.NoError(t, err)
	der, err = x509.CreateCertificate(crand.Reader, &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.ParseIP(address)}, ExtKeyUsage: uses}, above, own.Public(), authority)
	require.NoError(t, err)
	cert = write("cert.pem", "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(own)
	require.NoError(t, err)
	return cert, write("key.pem", "EC PRIVATE KEY", der), ca
}

// A certificate that the other machines would refuse ends the start. What keeps a fleet from beginning is said.
func TestCertificates(t *testing.T) {
	o := Options{Fleet: "test", Node: "a", Peers: map[string]string{"a": freePort(t)}, Dir: t.TempDir()}
	o.Cert, o.Key, o.CA = vouched(t, "127.0.0.1")
	e, err := start(t, o)
	require.NoError(t, err)
	require.NoError(t, e.Close())
	_, _, o.CA = vouched(t, "127.0.0.1")
	_, err = o.TLS()
	require.ErrorContains(t, err, "vouches for: x509: certificate signed by unknown authority")
	o.Cert, o.Key, o.CA = vouched(t, "127.0.0.2")
	_, err = o.TLS()
	require.ErrorContains(t, err, "at 127.0.0.1")
	o.Cert, o.Key, o.CA = vouched(t, "127.0.0.1", x509.ExtKeyUsageServerAuth)
	_, err = o.TLS()
	require.ErrorContains(t, err, "is not one of a client at 127.0.0.1")

	var said bytes.Buffer
	o.Peers["b"], o.Dir, o.Logger = freePort(t), t.TempDir(), slog.New(slog.NewTextHandler(&said, nil))
	o.Cert, o.Key, o.CA = vouched(t, "127.0.0.1")
	ctx, cancel := context.WithTimeout(t.Context(), sayFirst+3*askAgain)
	defer cancel()
	_, err = Start(ctx, o)
	require.ErrorContains(t, err, "not all of a, b are there")
	require.Contains(t, said.String(), "connection refused")
}
