// This file turns answers and errors into Outcomes.

package polite

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/internal/failure"
	"github.com/seed-7440039f/frontier/internal/reply"
)

// OutcomeOf returns the Outcome that an exchange has for its lease. resp is the answer, or nil;
// err is the error of the request, or of reading the body.
//
//	304                          Unchanged; Failed if the request had no condition
//	404, 410                     Gone
//	429, 408, 421, 425, 5xx      Failed, with their kind of failure
//	420, 430, 999                the same as 429, which some services mean by them
//	4xx with Retry-After         the same as 429
//	other statuses               Visited: also redirects, whose targets are URLs of their own
//	no answer, or a broken body  Failed, with the kind of failure
//	cancelled                    Requeue: it says nothing about the host
//	*DeniedError                 Denied
//	*BusyError                   Requeue, after the time that it names
//	*UnreachableError            Requeue or, to let other URLs of the host pass, PutOff
//
// RetryAfter comes from a Retry-After header, in seconds or as a date, and is at most 30 days; of several
// values the longest counts. Modified comes from Last-Modified. Bytes is the length of the body if it is known. If resp came
// through a Transport, Bytes is what was read of it, and Ended and Duration are set as well;
// otherwise they are zero, and the frontier takes the time of Done.
func OutcomeOf(resp *http.Response, err error) frontier.Outcome {
	if resp != nil {
		if c := contactOf(resp); c != nil {
			return c.outcomeNow(err)
		}
	}
	return outcomeOf(resp, err)
}

// holdMost limits how long a host is left alone because robots.txt is unreachable. The frontier
// leaves hosts that fail alone for longer; this is for failures that it does not see.
const holdMost = 10 * time.Minute

func outcomeOf(resp *http.Response, err error) frontier.Outcome {
	var o frontier.Outcome
	status, retryAfter := 0, time.Duration(0)
	if resp != nil {
		status = resp.StatusCode
		retryAfter = reply.RetryAfter(resp.Header, time.Now())
		o.Result, o.RetryAfter = failure.Result(status, conditional(resp), retryAfter), retryAfter
		o.Bytes = max(resp.ContentLength, 0)
		if t, bad := reply.Date(resp.Header.Get("Last-Modified")); bad == nil && err == nil {
			o.Modified = t
		}
	}
	if err != nil {
		o.Result = frontier.Failed
		notTried(err, &o)
	}
	if o.Result == frontier.Failed {
		o.Failure = failure.Of(status, retryAfter, reply.CauseOf(err))
	}
	return o
}

// conditional reports whether an answer's request asked for the page only if it had changed, or is not known.
func conditional(resp *http.Response) bool {
	r := resp.Request
	return r == nil || r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Modified-Since") != ""
}

// notTried fills o for the errors that say nothing about the page or its host.
func notTried(err error, o *frontier.Outcome) {
	wait := func(until time.Time) {
		o.Result, o.Uncontacted = frontier.Requeue, true
		if !until.IsZero() {
			o.RetryAfter = max(0, time.Until(until))
		}
	}
	if _, ok := errors.AsType[*DeniedError](err); ok {
		o.Result, o.Uncontacted = frontier.Denied, true
		return
	}
	if e, ok := errors.AsType[*url.Error](err); ok && e.Op == "parse" {
		o.Result, o.Uncontacted = frontier.Denied, true // no server will ever see it
		return
	}
	if e, ok := errors.AsType[*BusyError](err); ok {
		wait(e.Until)
		o.CrawlDelay = e.delay
		return
	}
	if e, ok := errors.AsType[*UnreachableError](err); ok {
		if e.aside {
			o.Result, o.Uncontacted, o.Next = frontier.PutOff, true, e.Until
			return
		}
		wait(e.Until)
		o.RetryAfter = min(o.RetryAfter, holdMost)
		return
	}
	if _, ok := errors.AsType[*RedirectError](err); ok {
		o.Result = frontier.Visited
		return
	}
	for _, e := range []error{ErrHandedBack, ErrLeaseUsed, frontier.ErrClosed, frontier.ErrNotLeased, frontier.ErrGroupBusy} {
		if errors.Is(err, e) {
			wait(time.Time{})
			return
		}
	}
	if errors.Is(err, context.Canceled) {
		o.Result = frontier.Requeue
	}
}
