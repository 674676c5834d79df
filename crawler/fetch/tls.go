// This file configures TLS, and says when a server speaks only old versions.

package fetch

import (
	"crypto/tls"
	"slices"
	"strings"
)

// tlsConfig returns the configuration of https.
func (o *Options) tlsConfig() *tls.Config {
	if !o.OldTLS {
		return o.TLS
	}
	c := &tls.Config{}
	if o.TLS != nil {
		c = o.TLS.Clone()
	}
	c.MinVersion = tls.VersionTLS10
	if len(c.CipherSuites) == 0 {
		for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
			if !strings.Contains(s.Name, "RC4") { // broken, and no browser has it
				c.CipherSuites = append(c.CipherSuites, s.ID)
			}
		}
	}
	return c
}

// oldTLSError wraps the error of a handshake that OldTLS may mend.
type oldTLSError struct{ err error }

func (e oldTLSError) Error() string {
	return e.err.Error() + ": the server may know only TLS that is no longer safe; OldTLS (-old-tls) speaks it"
}
func (e oldTLSError) Unwrap() error { return e.err }

// wantsOldTLS reports whether a handshake failed for the lack of a common version or cipher. crypto/tls has no
// types for that.
func wantsOldTLS(err error) bool {
	for _, said := range []string{
		"remote error: tls: handshake failure", "remote error: tls: protocol version not supported", "remote error: tls: insufficient security level",
		"tls: server selected unsupported protocol version", "tls: server chose an unconfigured cipher suite",
	} {
		if strings.Contains(err.Error(), said) {
			return true
		}
	}
	return false
}
