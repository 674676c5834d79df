// This file classifies failures of TLS connections.

package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/seed-7440039f/frontier/internal/reply"
)

// TLSFault is why a TLS connection failed.
type TLSFault uint8

const (
	NoTLSFault   TLSFault = iota // the error is none of TLS
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
