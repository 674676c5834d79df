// This file sorts what can go wrong into classes a crawler can count and act on.

package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
)

// Class says what kind of thing went wrong.
type Class uint8

const (
	Other    Class = iota
	BadURL         // the URL cannot be fetched; nothing was sent
	DNS            // the host name has no address
	Connect        // no connection
	TLS            // no agreement on a secure one
	Timeout        // one of the time limits, or the context's deadline
	Canceled       // the context was cancelled
	Cut            // the connection ended within the answer or before it
	Protocol       // the answer is not HTTP, or its header too long
	Decode         // the body is not encoded as its header says
)

// String returns the class's name in lower case.
func (c Class) String() string {
	names := [...]string{"other", "bad url", "dns", "connect", "tls", "timeout", "canceled", "cut", "protocol", "decode"}
	if int(c) < len(names) {
		return names[c]
	}
	return "invalid class"
}

// Error is what every error of Fetch is.
type Error struct {
	URL   string
	Class Class
	Err   error
}

func (e *Error) Error() string { return fmt.Sprintf("fetch %q: %v: %v", e.URL, e.Class, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// ClassOf returns the class of an error of Fetch; Other if it is none.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Other
}

// decodeError marks what the decoder said about a body.
type decodeError struct{ err error }

func (e decodeError) Error() string { return e.err.Error() }
func (e decodeError) Unwrap() error { return e.err }

// classify names err, the error of an attempt under ctx.
func classify(ctx context.Context, err error) Class {
	if ctx.Err() == context.DeadlineExceeded {
		return Timeout
	}
	if ctx.Err() != nil {
		return Canceled
	}
	if _, ok := errors.AsType[decodeError](err); ok {
		return Decode
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return DNS
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
		return Timeout
	}
	op, _ := errors.AsType[*net.OpError](err)
	if op != nil && op.Op == "dial" {
		return Connect
	}
	if isTLS(err) {
		return TLS
	}
	if op != nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "server closed idle connection") {
		return Cut
	}
	return Protocol
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
	return strings.Contains(err.Error(), "tls: ")
}
