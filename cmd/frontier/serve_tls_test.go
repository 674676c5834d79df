// This file tests a server whose clients show certificates.

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func (a *authority) sign(t *testing.T, c *x509.Certificate) (der []byte, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(time.Now().UnixNano()), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = c, key
	}
	der, err = x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	require.NoError(t, err)
	return der, key
}

func newAuthority(t *testing.T) *authority {
	der, key := new(authority).sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{cert, key}
}

// client is a certificate of a client.
func (a *authority) client(t *testing.T, name string) tls.Certificate {
	der, key := a.sign(t, &x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func written(t *testing.T, name, kind string, der []byte) string {
	t.Helper()
	require.NoError(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return name
}

func TestClientsShowCertificates(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	der, key := a.sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	base, stop, log := serving(t, "-dir", filepath.Join(dir, "state"),
		"-tls-cert", written(t, filepath.Join(dir, "cert"), "CERTIFICATE", der), "-tls-key", written(t, filepath.Join(dir, "key"), "PRIVATE KEY", secret),
		"-client-ca", written(t, filepath.Join(dir, "ca"), "CERTIFICATE", a.cert.Raw), "-client", "crawl=bot", "-client", "look=watcher")
	base = strings.Replace(base, "http:", "https:", 1)
	forGRPC := regexp.MustCompile(` grpc=(\S+)`).FindStringSubmatch(log.String())[1]

	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	with := func(c ...tls.Certificate) *tls.Config { return &tls.Config{RootCAs: pool, Certificates: c} }
	overHTTP := func(c *tls.Config, method, path string) (int, error) {
		r, err := http.NewRequest(method, base+path, strings.NewReader("{}"))
		require.NoError(t, err)
		transport := &http.Transport{TLSClientConfig: c}
		defer transport.CloseIdleConnections()
		res, err := transport.RoundTrip(r)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	overGRPC := func(c *tls.Config, call func(context.Context, pb.URLFrontierClient) error) codes.Code {
		conn, err := grpc.NewClient(forGRPC, grpc.WithTransportCredentials(credentials.NewTLS(c)))
		require.NoError(t, err)
		defer conn.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return grpcstatus.Code(call(ctx, pb.NewURLFrontierClient(conn)))
	}
	look := func(ctx context.Context, c pb.URLFrontierClient) error {
		_, err := c.ListCrawls(ctx, &pb.Local{})
		return err
	}
	operate := func(ctx context.Context, c pb.URLFrontierClient) error {
		_, err := c.DeleteCrawl(ctx, &pb.DeleteCrawlMessage{Value: "news"})
		return err
	}

	for name, c := range map[string]*tls.Config{"none": with(), "of another authority": with(newAuthority(t).client(t, "bot"))} {
		_, err := overHTTP(c, "GET", "/v1/stats")
		assert.Error(t, err, name)
		assert.Equal(t, codes.Unavailable, overGRPC(c, look), name)
	}
	bot, watcher, stranger := with(a.client(t, "bot")), with(a.client(t, "watcher")), with(a.client(t, "stranger"))
	for _, x := range []struct {
		c            *tls.Config
		method, path string
		want         int
	}{
		{bot, "GET", "/v1/stats", 200}, {bot, "POST", "/v1/leases", 200}, {bot, "DELETE", "/v1/rules/a.example", 403},
		{watcher, "GET", "/v1/stats", 200}, {watcher, "POST", "/v1/leases", 403}, {stranger, "GET", "/v1/stats", 401},
	} {
		code, err := overHTTP(x.c, x.method, x.path)
		require.NoError(t, err)
		assert.Equal(t, x.want, code, "%s %s", x.method, x.path)
	}
	assert.Equal(t, codes.OK, overGRPC(bot, look))
	assert.Equal(t, codes.PermissionDenied, overGRPC(bot, operate))
	assert.Equal(t, codes.OK, overGRPC(watcher, look))
	assert.Equal(t, codes.Unauthenticated, overGRPC(stranger, look))

	_, err = overHTTP(&tls.Config{RootCAs: x509.NewCertPool(), Certificates: bot.Certificates}, "GET", "/v1/stats")
	assert.Error(t, err, "a client that does not know the authority")
	assert.Zero(t, stop())
	assert.Contains(t, log.String(), "who=bot")
}
