// This file defines the records and their encoding.

package crawllog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Outcome is the fate of a URL.
type Outcome string

// What becomes of URLs.
const (
	Fetched    Outcome = "fetched"    // the answer's status was 2xx
	Unchanged  Outcome = "unchanged"  // the answer was 304: it is as it was
	Redirected Outcome = "redirected" // the answer was another 3xx
	Gone       Outcome = "gone"       // the answer was 404 or 410
	Rejected   Outcome = "rejected"   // the answer was another 4xx that is not tried again
	Failed     Outcome = "failed"     // the fetch failed, and will be tried again
	GivenUp    Outcome = "given-up"   // it failed too often, or its host was given up
	Refused    Outcome = "refused"    // the crawl does not want the URL or its response: Rule names the reason
)

// What is recorded besides.
const (
	Robots      Outcome = "robots"        // a robots.txt, or the target of its redirect, was requested
	HostGivenUp Outcome = "host-given-up" // Count URLs of Host are about to be given up; their records follow
	Missing     Outcome = "missing"       // Count records could not be written here
	Opened      Outcome = "opened"        // a run begins; Count lines before it were cut, and Reason says so if the run before did not end in good order
	Closed      Outcome = "closed"        // a run ended in good order
)

// Outcomes are the outcomes of URLs.
var Outcomes = []Outcome{Fetched, Unchanged, Redirected, Gone, Rejected, Failed, GivenUp, Refused}

// Answered reports whether a server gave a final answer.
func (o Outcome) Answered() bool {
	return o == Fetched || o == Unchanged || o == Redirected || o == Gone || o == Rejected
}

// OfURL reports whether the outcome concerns one URL.
func (o Outcome) OfURL() bool { return o.Answered() || o == Failed || o == GivenUp || o == Refused }

// Record is one line of the log. Fields that do not apply are zero, and left out of the line.
type Record struct {
	Time     time.Time `json:"time"`               // when it was recorded; Add sets it if it is zero
	URL      string    `json:"url,omitempty"`      // without a password
	Host     string    `json:"host,omitempty"`     // its host key
	Outcome  Outcome   `json:"outcome"`            // what became of it
	Status   int       `json:"status,omitempty"`   // of the answer
	Bytes    int64     `json:"bytes,omitempty"`    // of the answer, as transferred
	Seconds  float64   `json:"seconds,omitempty"`  // from Began to the end of the answer
	Due      time.Time `json:"due,omitzero"`       // from when on the host might be contacted
	Began    time.Time `json:"began,omitzero"`     // when it was contacted
	Via      string    `json:"via,omitempty"`      // the page that led to it, if the crawl remembers that
	Target   string    `json:"target,omitempty"`   // where a redirect leads
	Digest   string    `json:"digest,omitempty"`   // of the answer's body: sha1 in base 32, as in WARC files
	Type     string    `json:"type,omitempty"`     // the media type of the answer
	Rule     string    `json:"rule,omitempty"`     // what refused it: robots.txt, scope, blocked, or a filter's name
	Reason   string    `json:"reason,omitempty"`   // the error, or what the rule says
	Priority int       `json:"priority,omitempty"` // of the hand-out
	Depth    int       `json:"depth,omitempty"`    // links from a seed
	Visit    int       `json:"visit,omitempty"`    // number of the visit, from 1
	Attempt  int       `json:"attempt,omitempty"`  // number of the try of this visit, from 1; 0: a link that was refused
	Crawl    uint32    `json:"crawl,omitempty"`    // the number of its crawl
	Again    bool      `json:"again,omitempty"`    // recorded twice: the process was killed between the first record and the end of the lease
	Count    int64     `json:"count,omitempty"`    // see the outcomes that do not concern one URL
}

// Took returns how long the fetch took.
func (r *Record) Took() time.Duration { return time.Duration(r.Seconds * float64(time.Second)) }

// MarshalLine returns the record as a line of the log, with its end.
func (r *Record) MarshalLine() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, fmt.Errorf("crawllog: %w", err)
	}
	return b.Bytes(), nil
}

// needle returns the encoding of a URL in a line.
func needle(url string) ([]byte, error) {
	line, err := (&Record{URL: url}).MarshalLine()
	if err != nil {
		return nil, err
	}
	from := bytes.Index(line, []byte(`"url":`))
	to := bytes.Index(line, []byte(`,"outcome":`))
	if from < 0 || to < from {
		return nil, errors.New("crawllog: no URL given")
	}
	return line[from : to+1], nil
}

// hostNeedle returns the encoding of a host and an outcome in a line; of the host alone if o is empty.
func hostNeedle(host string, o Outcome) ([]byte, error) {
	line, err := (&Record{Host: host, Outcome: o}).MarshalLine()
	if err != nil {
		return nil, err
	}
	from := bytes.Index(line, []byte(`"host":`))
	if from < 0 {
		return nil, errors.New("crawllog: no host given")
	}
	to := len(line) - len("}\n")
	if o == "" {
		to = bytes.Index(line, []byte(`"outcome":`))
	}
	return line[from:to], nil
}

// parse reads a line.
func parse(line []byte) (r Record, err error) {
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrLine, err)
	}
	if r.Outcome == "" {
		return r, fmt.Errorf("%w: it has no outcome", ErrLine)
	}
	return r, nil
}

// ErrLine reports a line that is not a record. Other lines are not affected.
var ErrLine = errors.New("crawllog: a line cannot be read")

// Sentence describes what became of the URL, without the time.
func (r *Record) Sentence() string {
	answer := fmt.Sprintf("the server answered %d %s", r.Status, http.StatusText(r.Status))
	because := func(s string) string {
		if r.Reason != "" {
			s += ": " + r.Reason
		}
		return s
	}
	switch r.Outcome {
	case Fetched:
		s := fmt.Sprintf("fetched with status %d: %d bytes in %v", r.Status, r.Bytes, r.Took().Round(time.Millisecond))
		if r.Reason != "" {
			s += "; " + r.Reason
		}
		return s
	case Unchanged:
		return "asked for again, and not changed since the visit before (304)"
	case Redirected:
		if r.Target == "" {
			return answer
		}
		return answer + ", and leads to " + r.Target
	case Gone, Rejected:
		return answer
	case Robots:
		if r.Status == 0 {
			return because("the robots.txt could not be fetched")
		}
		return because("fetched as a robots.txt: " + answer)
	case Failed:
		return because(fmt.Sprintf("try %d failed, and it will be tried again", r.Attempt))
	case GivenUp:
		return because("given up")
	case Refused:
		if r.Attempt == 0 {
			return because("a link that was not taken, refused by " + r.Rule)
		}
		return because("not fetched, refused by " + r.Rule)
	case HostGivenUp:
		return because(fmt.Sprintf("%d URLs of %s are given up", r.Count, r.Host))
	case Missing:
		return fmt.Sprintf("%d records could not be written here", r.Count)
	}
	return because(string(r.Outcome))
}
