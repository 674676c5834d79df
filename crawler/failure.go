// This file classifies failures for the frontier.

package crawler

import (
	"errors"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/internal/failure"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// causes are the classes of errors that say something about the host.
var causes = map[fetch.Class]reply.Cause{
	fetch.DNS: reply.DNS, fetch.Blocked: reply.DNS, fetch.Connect: reply.Connect, fetch.TLS: reply.TLS, fetch.Timeout: reply.Timeout, fetch.Cut: reply.Cut,
}

// failureOf classifies a failed request.
func failureOf(res *fetch.Result, err error) frontier.Failure {
	cause := causes[fetch.ClassOf(err)]
	if e, ok := errors.AsType[*fetch.Error](err); ok && e.Stale {
		cause = reply.Other // a kept connection was closed: no reason to slow down
	}
	return failure.Of(res.Status, res.RetryAfter, cause)
}
