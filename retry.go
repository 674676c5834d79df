// This file says what kinds of failure there are, and when a URL whose try failed
// is tried again.
//
// What failures mean for the host is in backoff.go.

package frontier

import (
	"fmt"
	"time"
)

// Failure says why a contact failed. The zero value is FailureOther.
type Failure uint8

const (
	FailureOther       Failure = iota // none of the others, or not known
	FailureDNS                        // the host's name could not be resolved
	FailureConnect                    // no connection, or it broke before an answer
	FailureTimeout                    // no answer in time
	FailureServer                     // 5xx but 503
	FailureUnavailable                // 503
	FailureTooMany                    // 429
)

const failures = int(FailureTooMany) + 1

// String returns the kind's name in lower case.
func (k Failure) String() string {
	names := [failures]string{"other", "dns", "connect", "timeout", "server", "unavailable", "too many requests"}
	if int(k) < failures {
		return names[k]
	}
	return "invalid failure"
}

// RetryPolicy says what becomes of a URL whose try failed. It is called outside
// the lock, from any goroutine.
type RetryPolicy interface {
	// Retry is asked after the given try, counted from 1. It returns how long
	// to wait, from the try's end, and whether to try again at all. o.Failure
	// tells what went wrong. The URL comes later than that if its host may not be
	// contacted then. While its host is in quarantine the answer does not count.
	// A lease that ends by its deadline is a failed try too: Outcome.Failure is then
	// FailureOther, and the URL that is tried again waits at once.
	Retry(e Entry, attempt int, o Outcome) (wait time.Duration, again bool)
}

type retries struct {
	tries int
	first time.Duration
}

// Retries allows so many tries of a URL in all. The first retry comes after the
// given wait, each further one after four times the wait before it, at most 30
// days.
func Retries(tries int, first time.Duration) RetryPolicy { return retries{tries, first} }

func (r retries) Retry(_ Entry, attempt int, _ Outcome) (time.Duration, bool) {
	if attempt >= r.tries {
		return 0, false
	}
	wait := r.first
	for range min(attempt-1, 20) {
		wait = min(4*wait, maxDelay)
	}
	return wait, true
}

type retriesByKind [failures]RetryPolicy

// RetriesByKind asks the policy of the kind of failure, or other for kinds that
// have none. A URL's tries are counted over all kinds.
func RetriesByKind(other RetryPolicy, kinds map[Failure]RetryPolicy) RetryPolicy {
	var r retriesByKind
	for k := range r {
		r[k] = other
	}
	for k, p := range kinds {
		if int(k) < failures {
			r[k] = p
		}
	}
	return r
}

func (r retriesByKind) Retry(e Entry, attempt int, o Outcome) (time.Duration, bool) {
	return r[o.Failure].Retry(e, attempt, o)
}

// DefaultRetries is the policy that Options.Retry has by default: 3 tries, half a
// minute after the first. The host's own trouble is waited for longer: 4 tries
// after 10 minutes if its name could not be resolved, 5 after a minute without
// a connection or with a 503, 3 after a minute if it did not answer in time or
// with another 5xx. A 429 is not the URL's fault: 8 tries after half a minute.
func DefaultRetries() RetryPolicy {
	return RetriesByKind(Retries(3, 30*time.Second), map[Failure]RetryPolicy{
		FailureDNS:         Retries(4, 10*time.Minute),
		FailureConnect:     Retries(5, time.Minute),
		FailureTimeout:     Retries(3, time.Minute),
		FailureServer:      Retries(3, time.Minute),
		FailureUnavailable: Retries(5, time.Minute),
		FailureTooMany:     Retries(8, 30*time.Second),
	})
}

// TriesAgain reports whether the URL of a lease comes again if the lease ends with o
// as Failed: whether this was not its last try, as Options.Retry says.
func (f *Frontier) TriesAgain(l Lease, o Outcome) bool {
	_, again := f.opts.Retry.Retry(l.Entry, l.Attempt, o)
	return again
}

func checkRetry(name string, p RetryPolicy) []error {
	var errs []error
	switch r := p.(type) {
	case nil:
		errs = append(errs, fmt.Errorf("%s is nil; want a policy", name))
	case retries:
		if r.tries < 1 || r.first < 0 || r.first > maxDelay {
			errs = append(errs, fmt.Errorf("%s is Retries(%d, %v); want tries >= 1 and a wait >= 0, at most %v", name, r.tries, r.first, maxDelay))
		}
	case retriesByKind:
		for k, p := range r {
			errs = append(errs, checkRetry(fmt.Sprintf("%s for %q", name, Failure(k)), p)...)
		}
	}
	return errs
}
