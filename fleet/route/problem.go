// This file defines the errors of a router, and those of parts as they are passed on.

package route

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"

	"github.com/seed-7440039f/frontier/internal/jsonl"
)

// problem is an error in the form of RFC 9457: of the router, or of a part.
type problem struct {
	Type   string          `json:"type"`
	Title  string          `json:"title"`
	Status int             `json:"status"`
	Detail string          `json:"detail,omitempty"`
	Errors json.RawMessage `json:"errors,omitempty"`

	kind string // the last part of Type
	wait string // Retry-After
}

func (p *problem) Error() string { return p.Detail }

const problemBase = "https://github.com/seed-7440039f/frontier/problems/"

var titles = map[string]string{
	"busy": "The service is busy", "bad-request": "The request is malformed", "not-found": "There is no such resource", "forbidden": "This is not allowed",
	"too-large": "The request is too large", "not-leased": "The lease has ended, or never was", "group-busy": "The group has no free slot", "conflict": "The parts contradict each other",
	"limit": "The router refuses this", "not-routed": "Only a part answers this", "internal": "The router has failed",
}

// MarshalJSON completes a problem of the router.
func (p *problem) MarshalJSON() ([]byte, error) {
	type plain problem
	x := plain(*p)
	if x.Type == "" {
		x.Type, x.Title = problemBase+x.kind, titles[x.kind]
	}
	return json.Marshal(x)
}

func badRequest(format string, args ...any) *problem {
	return &problem{kind: "bad-request", Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...)}
}

func busy(format string, args ...any) *problem {
	return &problem{kind: "busy", Status: http.StatusServiceUnavailable, Detail: fmt.Sprintf(format, args...)}
}

// passes reports whether the same request may succeed later, or elsewhere.
func passes(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// away reports whether an error says that a part does not answer at the moment.
func away(err error) bool { return err != nil && problemOf(err).Status >= 500 }

// errLong is the error of a line that is too long.
var errLong = errors.New("a line is longer than 1 MiB")

// problemOf maps an error to its problem.
func problemOf(err error) *problem {
	var large *http.MaxBytesError
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	x := &problem{kind: "internal", Status: http.StatusInternalServerError, Detail: err.Error()}
	switch {
	case errors.As(err, &large), errors.Is(err, errLong):
		x.kind, x.Status = "too-large", http.StatusRequestEntityTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded): // the client was silent for too long
		x.kind, x.Status = "bad-request", http.StatusRequestTimeout
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		x.kind, x.Status = "busy", http.StatusServiceUnavailable
	case errors.Is(err, errBody), errors.Is(err, jsonl.ErrSyntax):
		x.kind, x.Status = "bad-request", http.StatusBadRequest
	}
	return x
}

// refusal reads the problem that a part or its Console has answered. It names the part if that one has failed.
func refusal(p *part, res *http.Response, body []byte) *problem {
	x := &problem{}
	if json.Unmarshal(body, x) != nil || x.Type == "" {
		var said struct{ Error string }
		_ = json.Unmarshal(body, &said)
		*x = problem{kind: "internal", Detail: cmp.Or(said.Error, fmt.Sprintf("status %d", res.StatusCode))}
		if passes(res.StatusCode) {
			x.kind = "busy"
		}
	} else {
		x.kind = path.Base(x.Type)
	}
	if x.Status, x.wait = res.StatusCode, res.Header.Get("Retry-After"); x.Status >= 500 {
		x.Detail = "part " + p.name + ": " + x.Detail
	}
	return x
}
