// This file says how long a host is left alone after a contact.

package frontier

import (
	"fmt"
	"time"
)

// DelayPolicy says how long a host is left alone after a contact. Crawl-delay
// and Retry-After come on top: the longest holds. Its methods are called
// outside the frontier's lock, from any goroutine.
type DelayPolicy interface {
	// Delay is the time from the end of the contact described by o to the next
	// one. o.Duration and o.Ended are filled in. Negative counts as 0.
	Delay(host string, o Outcome) time.Duration
	// Max is the longest that Delay answers. After a crash every host is left
	// alone for that long from the moment of reopening.
	Max() time.Duration
}

type factorDelay struct {
	k        float64
	min, max time.Duration
}

// FactorDelay is Mercator's policy: k times the duration of the last fetch, at
// least min and at most max. The default is FactorDelay(10, time.Second,
// 30*time.Second). Open refuses a negative or infinite k, a negative min, and
// max below min.
func FactorDelay(k float64, min, max time.Duration) DelayPolicy {
	return factorDelay{k, min, max}
}

func (d factorDelay) Delay(_ string, o Outcome) time.Duration {
	x := d.k * float64(o.Duration)
	if x >= float64(d.max) {
		return d.max
	}
	return max(time.Duration(x), d.min)
}
func (d factorDelay) Max() time.Duration { return d.max }
func (d factorDelay) String() string {
	return fmt.Sprintf("%g times the fetch, %s to %s", d.k, d.min, d.max)
}

type fixedDelay time.Duration

// FixedDelay leaves every host alone for d. Open refuses a negative d.
func FixedDelay(d time.Duration) DelayPolicy { return fixedDelay(d) }

func (d fixedDelay) Delay(string, Outcome) time.Duration { return time.Duration(d) }
func (d fixedDelay) Max() time.Duration                  { return time.Duration(d) }
func (d fixedDelay) String() string                      { return time.Duration(d).String() }
