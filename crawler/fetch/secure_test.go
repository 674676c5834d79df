// These tests speak TLS: HTTP/2, and what can be wrong with a certificate.

package fetch

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// certificate is one for a name, valid from now minus an hour until end.
func certificate(t *testing.T, name string, end time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return certificateOf(t, key, name, end)
}

func certificateOf(t *testing.T, key crypto.Signer, name string, end time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: end.Add(-2 * time.Hour), NotAfter: end, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// secureWeb serves h for a.example, with HTTP/2 if both want it.
func secureWeb(t *testing.T, cert tls.Certificate, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func TestFetchOverHTTP2(t *testing.T) {
	cert, roots := certificate(t, "a.example", time.Now().Add(time.Hour))
	addr := secureWeb(t, cert, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/cut":
			_, _ = io.WriteString(w, "some")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case "/fields":
			for range 2000 {
				w.Header().Add("X-H", "y")
			}
		case "/header":
			w.Header().Set("X-Big", strings.Repeat("x", 300<<10))
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}
		_, _ = io.WriteString(w, r.Proto+" "+r.RequestURI)
	})
	for _, c := range []struct {
		off  bool
		want string
	}{{false, "HTTP/2.0"}, {true, "HTTP/1.1"}} {
		f := newFetcher(t, Options{TLS: &tls.Config{RootCAs: roots}, NoHTTP2: c.off, Resolve: map[string]string{"*": addr}, MaxBody: 1 << 20})
		for i := range 3 {
			res, err := get(t, f, "https://a.example//x/%7ey?q=|")
			require.NoError(t, err)
			assert.Equal(t, c.want, res.Proto)
			assert.Contains(t, []string{c.want + " //x/%7ey?q=|", c.want + " https://a.example//x/%7ey?q=|"}, body(t, res))
			assert.Equal(t, i > 0, res.Timing.Reused)
			assert.Equal(t, i == 0, res.Timing.TLS > 0)
			assert.Equal(t, addr, res.Remote.String())
		}
		_, err := get(t, f, "https://a.example/fields")
		assert.Equal(t, Protocol, ClassOf(err), "%v", err)
		_, err = get(t, f, "https://a.example/header")
		assert.Error(t, err)
		res, err := get(t, f, "https://a.example/endless")
		assert.NoError(t, err)
		assert.True(t, res.Truncated)
		_, err = get(t, f, "https://a.example/cut")
		assert.Error(t, err)
		res, err = get(t, f, "https://a.example/")
		assert.NoError(t, err)
		assert.False(t, res.Timing.Reused, "after a failure the connection is closed")
	}
}

// Servers that know only RSA key exchange, old versions or CBC are read with OldTLS. Without it, the error says so.
func TestOldTLS(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	cert, roots := certificateOf(t, key, "a.example", time.Now().Add(time.Hour))
	for name, server := range map[string]*tls.Config{
		"RSA key exchange": {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256}},
		"RSA, CBC":         {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_RSA_WITH_AES_256_CBC_SHA}},
		"3DES":             {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA}},
		"TLS 1.0":          {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
		"TLS 1.1":          {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"new":              {},
	} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "x") }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.Certificates = []tls.Certificate{cert}
		s.TLS = server
		s.StartTLS()
		t.Cleanup(s.Close)
		for _, old := range []bool{false, true} {
			f := newFetcher(t, Options{TLS: &tls.Config{RootCAs: roots}, OldTLS: old, Resolve: map[string]string{"*": s.Listener.Addr().String()}})
			_, err := get(t, f, "https://a.example/")
			if old || name == "new" {
				assert.NoError(t, err, name)
				continue
			}
			assert.Equal(t, TLS, ClassOf(err), "%s: %v", name, err)
			assert.ErrorContains(t, err, "OldTLS (-old-tls) speaks it", name)
		}
	}
}

func TestTLSFaults(t *testing.T) {
	good, roots := certificate(t, "a.example", time.Now().Add(time.Hour))
	old, oldRoots := certificate(t, "a.example", time.Now().Add(-time.Hour))
	other, otherRoots := certificate(t, "b.example", time.Now().Add(time.Hour))
	hello := func(w http.ResponseWriter, _ *http.Request) {}
	for name, c := range map[string]struct {
		addr   string
		config *tls.Config
		want   string
	}{
		"expired":      {secureWeb(t, old, hello), &tls.Config{RootCAs: oldRoots}, "expired"},
		"another name": {secureWeb(t, other, hello), &tls.Config{RootCAs: otherRoots}, "valid for b.example, not a.example"},
		"untrusted":    {secureWeb(t, good, hello), &tls.Config{RootCAs: oldRoots}, "unknown authority"},
		"not TLS":      {web(t, hello), &tls.Config{}, ""},
		"old version":  {secureWeb(t, good, hello), &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS10, MinVersion: tls.VersionTLS10}, "protocol version"},
	} {
		f := newFetcher(t, Options{TLS: c.config, Resolve: map[string]string{"*": c.addr}})
		res, err := get(t, f, "https://a.example/")
		assert.Equal(t, TLS, ClassOf(err), "%s: %v", name, err)
		assert.ErrorContains(t, err, c.want, name)
		assert.Zero(t, res.Status)
	}
	// A server that never says hello has its own limit.
	addr, _ := raw(t, func(net.Conn) {})
	f := newFetcher(t, Options{TLSTimeout: 30 * time.Millisecond, Resolve: map[string]string{"*": addr}})
	_, err := get(t, f, "https://a.example/")
	assert.Equal(t, Timeout, ClassOf(err), "%v", err)
}
