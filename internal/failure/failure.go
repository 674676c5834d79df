// Package failure decides what an HTTP status, or the lack of one, means for a URL and for
// its host.
package failure

import (
	"net/http"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// Of classifies a failed exchange. What the server said of itself counts more than how its
// answer ended. Status 0 means that there was no answer.
func Of(status int, c reply.Cause) frontier.Failure {
	switch {
	case status == http.StatusTooManyRequests:
		return frontier.FailureTooMany
	case status == http.StatusServiceUnavailable:
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
// Failed.
func Result(status int) frontier.Result {
	switch {
	case status == http.StatusNotModified:
		return frontier.Unchanged
	case status == http.StatusNotFound || status == http.StatusGone:
		return frontier.Gone
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout || status == http.StatusTooEarly:
		return frontier.Failed
	}
	return frontier.Visited
}
