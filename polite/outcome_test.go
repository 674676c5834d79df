package polite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
)

func TestOutcomesOfAnswers(t *testing.T) {
	date := time.Date(1998, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, x := range []struct {
		status int
		header string
		value  string
		want   frontier.Outcome
	}{
		{status: 200, want: frontier.Outcome{Result: frontier.Visited}},
		{status: 200, header: "Last-Modified", value: date.Format(http.TimeFormat), want: frontier.Outcome{Modified: date}},
		{status: 200, header: "Last-Modified", value: "yesterday"},
		{status: 200, header: "Retry-After", value: "30", want: frontier.Outcome{RetryAfter: 30 * time.Second}},
		{status: 206}, {status: 301}, {status: 307, header: "Location", value: "/2"}, {status: 401}, {status: 403}, {status: 451},
		{status: 304, want: frontier.Outcome{Result: frontier.Unchanged}},
		{status: 404, want: frontier.Outcome{Result: frontier.Gone}},
		{status: 410, want: frontier.Outcome{Result: frontier.Gone}},
		{status: 408, want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTimeout}},
		{status: 425, want: frontier.Outcome{Result: frontier.Failed}},
		{status: 429, header: "Retry-After", value: "120", want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany, RetryAfter: 2 * time.Minute}},
		{status: 429, header: "Retry-After", value: "-1", want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany}},
		{status: 429, header: "Retry-After", value: "99999999999999", want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany, RetryAfter: 30 * 24 * time.Hour}},
		{status: 420, want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany}},
		{status: 430, want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany}},
		{status: 403, header: "Retry-After", value: "15.0", want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTooMany, RetryAfter: 15 * time.Second}},
		{status: 421, want: frontier.Outcome{Result: frontier.Failed}},
		{status: 529, want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureUnavailable}},
		{status: 500, want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureServer}},
		{status: 503, want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureUnavailable}},
		{status: 599, want: frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureServer}},
	} {
		x.want.Bytes = 4
		assert.Equal(t, x.want, OutcomeOf(says(x.status, "body", x.header, x.value), nil), "%d %s %s", x.status, x.header, x.value)
	}
	o := OutcomeOf(says(503, "", "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), nil)
	assert.InDelta(t, time.Hour, o.RetryAfter, float64(time.Minute), "a date")
	plain := says(304, "")
	plain.Request = &http.Request{Header: http.Header{}}
	assert.Equal(t, frontier.Failed, OutcomeOf(plain, nil).Result, "nothing was asked under a condition")
	plain.Request.Header.Set("If-None-Match", "x")
	assert.Equal(t, frontier.Unchanged, OutcomeOf(plain, nil).Result)
	o = OutcomeOf(says(200, "cut", "Last-Modified", date.Format(http.TimeFormat)), io.ErrUnexpectedEOF)
	assert.Equal(t, frontier.Outcome{Result: frontier.Failed, Bytes: 3}, o, "the body was cut")
	assert.Equal(t, frontier.FailureUnavailable, OutcomeOf(says(503, ""), io.ErrUnexpectedEOF).Failure)
}

func TestOutcomesOfErrorsOfOurOwn(t *testing.T) {
	in := time.Now().Add(time.Hour)
	for _, x := range []struct {
		err  error
		want frontier.Outcome
	}{
		{&DeniedError{}, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}},
		{ErrHandedBack, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}},
		{ErrLeaseUsed, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}},
		{&BusyError{}, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}},
		{&RedirectError{}, frontier.Outcome{}},
		{context.Canceled, frontier.Outcome{Result: frontier.Requeue}},
		{frontier.ErrClosed, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}},
	} {
		assert.Equal(t, x.want, OutcomeOf(nil, fmt.Errorf("get: %w", x.err)), "%v", x.err)
	}
	o := OutcomeOf(nil, &BusyError{Until: in})
	assert.InDelta(t, time.Hour, o.RetryAfter, float64(time.Minute))
	o.RetryAfter = 0
	assert.Equal(t, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}, o)
	assert.Equal(t, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true, RetryAfter: holdMost}, OutcomeOf(nil, &UnreachableError{Until: in}))
	assert.Equal(t, frontier.Outcome{Result: frontier.PutOff, Uncontacted: true, Next: in}, OutcomeOf(nil, &UnreachableError{Until: in, aside: true}))
	_, err := http.NewRequest("GET", "http://[a/", nil)
	assert.Equal(t, frontier.Outcome{Result: frontier.Denied, Uncontacted: true}, OutcomeOf(nil, err))
}

// Each failure is a real one.
func TestFailuresOfServers(t *testing.T) {
	silent := make(chan struct{})
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/reset":
			conn, _, _ := w.(http.Hijacker).Hijack()
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
		case "/cut":
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "short")
		case "/silent":
			<-silent
		case "/nonsense":
			conn, _, _ := w.(http.Hijacker).Hijack()
			io.WriteString(conn, "good day\n\n")
			conn.Close()
		}
	}))
	defer plain.Close()
	defer close(silent)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := "http://" + closed.Addr().String()
	closed.Close()
	base := &http.Transport{
		DisableKeepAlives: true,
		DialContext: (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no name server")
		}}}).DialContext,
	}
	for _, x := range []struct {
		name, url string
		want      frontier.Failure
	}{
		{"refused", refused, frontier.FailureConnect},
		{"reset", plain.URL + "/reset", frontier.FailureConnect},
		{"cut body", plain.URL + "/cut", frontier.FailureOther},
		{"no answer in time", plain.URL + "/silent", frontier.FailureTimeout},
		{"no HTTP", plain.URL + "/nonsense", frontier.FailureOther},
		{"unknown certificate", secure.URL, frontier.FailureConnect},
		{"no TLS", "https" + plain.URL[4:], frontier.FailureConnect},
		{"no such host", "http://nosuch.invalid/", frontier.FailureDNS},
	} {
		t.Run(x.name, func(t *testing.T) {
			base := base.Clone()
			if x.want == frontier.FailureTimeout {
				base.ResponseHeaderTimeout = 200 * time.Millisecond
			}
			resp, err := (&http.Client{Transport: base}).Get(x.url)
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			require.Error(t, err)
			o := OutcomeOf(resp, err)
			assert.Equal(t, frontier.Failed, o.Result)
			assert.Equal(t, x.want, o.Failure, "%v", err)

			tr := newTransport(t, base, frontier.Options{Delay: frontier.FixedDelay(0), Backoff: frontier.Backoff{Disabled: true}})
			l := lease(t, embedded(tr), x.url)
			v, _ := visit(t, &http.Client{Transport: tr}, l)
			o = v.Outcome()
			assert.Equal(t, frontier.Failed, o.Result)
			assert.Equal(t, x.want, o.Failure)
			require.NoError(t, tr.Frontier.Done(l, o))
		})
	}
}
