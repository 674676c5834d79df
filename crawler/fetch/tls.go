// This file classifies failures of TLS connections.

package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
	"strings"

	"github.com/seed-7440039f/frontier/internal/reply"
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

// TLSFault is why a TLS connection failed.
type TLSFault uint8

const (
	NoTLSFault   TLSFault = iota // the error does not come from TLS
	TLSExpired                   // the certificate is not valid now: expired, or not yet
	TLSName                      // it is another host's
	TLSUntrusted                 // not signed by a trusted authority
	TLSBadCert                   // it is wrong in another way
	TLSRefused                   // the server ended the handshake with an alert
	TLSNotTLS                    // the server speaks another protocol
	TLSHandshake                 // another failure of the handshake, such as no common version
)

// String returns the fault's name in lower case.
func (t TLSFault) String() string {
	names := [...]string{"none", "expired", "name", "untrusted", "bad certificate", "refused", "not tls", "handshake"}
	if int(t) < len(names) {
		return names[t]
	}
	return "invalid fault"
}

// TLSFaultOf returns the fault behind an error of class TLS.
func TLSFaultOf(err error) TLSFault {
	if ClassOf(err) != TLS && !reply.IsTLS(err) {
		return NoTLSFault
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return TLSExpired
		}
		return TLSBadCert
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return TLSName
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return TLSUntrusted
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return TLSBadCert
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return TLSNotTLS
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok || strings.Contains(err.Error(), "remote error: tls:") {
		return TLSRefused
	}
	return TLSHandshake
}
