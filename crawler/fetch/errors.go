// This file sorts errors into classes that a crawler can count and act on.

package fetch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-7440039f/frontier/internal/reply"
)

// Class is the kind of an error.
type Class uint8

// The values of a Class.
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
	Blocked        // the address or the port is forbidden; nothing was sent
	Unwanted       // Request.Admit did not want the body
	Store          // the body cannot be stored here, as on a full disk
)

// String returns the class's name in lower case.
func (c Class) String() string {
	names := [...]string{"other", "bad url", "dns", "connect", "tls", "timeout", "canceled", "cut", "protocol", "decode", "blocked", "unwanted", "store"}
	if int(c) < len(names) {
		return names[c]
	}
	return "invalid class"
}

// Error is the type of all errors of Fetch.
type Error struct {
	URL   string
	Class Class
	// Stale means that the server closed a connection kept from an earlier fetch instead of answering
	// on it. That says little about the host: the next request to it uses a new connection.
	Stale bool
	Err   error
}

// Error names the URL quoted, and without its user and password.
func (e *Error) Error() string {
	return fmt.Sprintf("fetch %q: %v: %v", Redact(e.URL), e.Class, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Redact removes user and password from a URL, for display.
func Redact(rawURL string) string {
	i := strings.Index(rawURL, "//")
	if i < 0 {
		return rawURL
	}
	i += 2
	end := len(rawURL)
	if n := strings.IndexAny(rawURL[i:], "/?#\\"); n >= 0 {
		end = i + n
	}
	if at := strings.LastIndexByte(rawURL[i:end], '@'); at >= 0 {
		return rawURL[:i] + rawURL[i+at+1:]
	}
	return rawURL
}

// ClassOf returns the class of an error of Fetch; Other for any other error.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return Other
}

// decodeError wraps an error of a decoder.
type decodeError struct{ error }

func (e decodeError) Unwrap() error { return e.error }

// unwantedError wraps an error of Request.Admit.
type unwantedError struct{ error }

func (e unwantedError) Unwrap() error { return e.error }

// contactError wraps an error of Request.Contact.
type contactError struct{ error }

func (e contactError) Unwrap() error { return e.error }

// causes are the classes of errors of the network.
var causes = [...]Class{
	reply.Other: Protocol, reply.DNS: DNS, reply.Connect: Connect, reply.TLS: TLS, reply.Timeout: Timeout, reply.Cut: Cut,
}

// classify names err, the error of an attempt under ctx.
func classify(ctx context.Context, err error) Class {
	if _, ok := errors.AsType[*AddressError](err); ok {
		return Blocked
	}
	if _, ok := errors.AsType[unwantedError](err); ok {
		return Unwanted
	}
	if _, ok := errors.AsType[contactError](err); ok {
		return Other
	}
	if ctx.Err() == context.DeadlineExceeded {
		return Timeout
	}
	if ctx.Err() != nil {
		return Canceled
	}
	if errors.Is(err, errStore) {
		return Store
	}
	if _, ok := errors.AsType[decodeError](err); ok {
		return Decode
	}
	return causes[reply.CauseOf(err)]
}
