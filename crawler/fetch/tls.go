// This file tells what is wrong with a secure connection.

package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

// TLSFault says why there is no agreement on a secure connection.
type TLSFault uint8

const (
	NoTLSFault   TLSFault = iota // the error is none of TLS
	TLSExpired                   // the certificate is not valid now: expired, or not yet
	TLSName                      // it is another host's
	TLSUntrusted                 // nobody who is trusted signed it
	TLSBadCert                   // it is wrong in another way
	TLSRefused                   // the server ended the handshake with an alert
	TLSNotTLS                    // the server speaks something else
	TLSHandshake                 // the handshake failed otherwise: no common version, say
)

// String returns the fault's name in lower case.
func (t TLSFault) String() string {
	names := [...]string{"none", "expired", "name", "untrusted", "bad certificate", "refused", "not tls", "handshake"}
	if int(t) < len(names) {
		return names[t]
	}
	return "invalid fault"
}

// TLSFaultOf returns what is wrong, for errors of the class TLS.
func TLSFaultOf(err error) TLSFault {
	if ClassOf(err) != TLS && !isTLS(err) {
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

func isTLS(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return true
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return true
	}
	return strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}
