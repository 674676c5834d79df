// Package failure decides what an HTTP status, or the lack of one, means for a URL and for its host.
package failure

import (
	"net/http"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// Of classifies a failed exchange. What the server said of itself counts more than how its
// answer ended. Status 0 means that there was no answer. retryAfter is the answer's; 509 and 529 are what
// overloaded services say for 503.
func Of(status int, retryAfter time.Duration, c reply.Cause) frontier.Failure {
	switch {
	case reply.AsksForLess(status, retryAfter):
		return frontier.FailureTooMany
	case status == http.StatusServiceUnavailable || status == 509 || status == 529:
		return frontier.FailureUnavailable
	case status >= 500:
		return frontier.FailureServer
	case status == http.StatusRequestTimeout:
		return frontier.FailureTimeout
	}
	switch c {
	case reply.DNS:
		return frontier.FailureDNS
	case reply.Connect, reply.TLS:
		return frontier.FailureConnect
	case reply.Cut:
		if status == 0 {
			return frontier.FailureConnect
		}
	case reply.Timeout:
		return frontier.FailureTimeout
	}
	return frontier.FailureOther
}

// Result is how a visit ended that was answered with a status: Visited, Unchanged, Gone or
// Failed. conditional means that the request asked for the page only if it had changed: otherwise a 304
// answers something else, and the page is still to be asked for.
func Result(status int, conditional bool, retryAfter time.Duration) frontier.Result {
	switch {
	case status == http.StatusNotModified && conditional:
		return frontier.Unchanged
	case status == http.StatusNotModified:
		return frontier.Failed
	case status == http.StatusNotFound || status == http.StatusGone:
		return frontier.Gone
	case status >= 500 || reply.AsksForLess(status, retryAfter):
		return frontier.Failed
	case status == http.StatusRequestTimeout || status == http.StatusTooEarly || status == http.StatusMisdirectedRequest:
		return frontier.Failed
	}
	return frontier.Visited
}
