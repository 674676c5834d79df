// Package reply reads what an exchange over HTTP shows: why it failed, and how long the
// server asks to be left alone.
package reply

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
)

// Cause is why an exchange failed.
type Cause uint8

// The values of a Cause.
const (
	Other   Cause = iota // none of the others: the answer is not HTTP, for instance
	DNS                  // the host name has no address
	Connect              // no connection
	TLS                  // no agreement on a secure one
	Timeout              // a time limit
	Cut                  // the connection ended within the answer or before it
)

// CauseOf returns the cause behind an error of net/http, net or crypto/tls.
func CauseOf(err error) Cause {
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return DNS
	}
	if IsTimeout(err) {
		return Timeout
	}
	op, _ := errors.AsType[*net.OpError](err)
	if op != nil && op.Op == "dial" {
		return Connect
	}
	if IsTLS(err) {
		return TLS
	}
	if op != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Cut
	}
	if err != nil {
		for _, said := range []string{"server closed idle connection", "server sent GOAWAY", "client connection lost", "REFUSED_STREAM"} {
			if strings.Contains(err.Error(), said) {
				return Cut
			}
		}
	}
	return Other
}

// IsTimeout reports whether err is that of a time limit.
func IsTimeout(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout() || errors.Is(err, os.ErrDeadlineExceeded)
}

// IsTLS reports whether err is about a secure connection.
func IsTLS(err error) bool {
	if err == nil {
		return false
	}
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
