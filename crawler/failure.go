// This file classifies failures for the frontier.

package crawler

import (
	"errors"
	"net/http"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
)

// failureOf classifies a failed request. What the server said of itself counts
// more than how its answer ended.
func failureOf(status int, err error) frontier.Failure {
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
	switch fetch.ClassOf(err) {
	case fetch.DNS:
		return frontier.FailureDNS
	case fetch.Connect, fetch.TLS:
		return frontier.FailureConnect
	case fetch.Cut:
		if e, ok := errors.AsType[*fetch.Error](err); ok && e.Stale {
			return frontier.FailureOther // a kept connection was closed: no reason to slow down
		}
		if status == 0 {
			return frontier.FailureConnect
		}
	case fetch.Timeout:
		return frontier.FailureTimeout
	}
	return frontier.FailureOther
}
