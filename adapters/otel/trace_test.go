package frontierotel

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/seed-7440039f/frontier"
)

// A span is as long as its lease, has what became of it, and is the parent of what happens under it.
func TestStartLease(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	tracer := trace.NewTracerProvider(trace.WithSpanProcessor(spans)).Tracer("test")
	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://me:secret@a.example/page", Crawl: 7})
	require.NoError(t, err)
	l, err := f.Next(t.Context())
	require.NoError(t, err)

	ctx, end := StartLease(t.Context(), tracer, l)
	_, fetch := tracer.Start(ctx, "fetch")
	fetch.End()
	o := frontier.Outcome{Result: frontier.Failed, Failure: frontier.FailureTimeout, Ended: l.LeasedAt.Add(time.Second)}
	require.NoError(t, f.Done(l, o))
	end(o)

	all := spans.Ended()
	require.Len(t, all, 2)
	span := all[1]
	assert.Equal(t, span.SpanContext().SpanID(), all[0].Parent().SpanID())
	assert.Equal(t, time.Second, span.EndTime().Sub(span.StartTime()))
	assert.Equal(t, codes.Error, span.Status().Code)
	for _, want := range []attribute.KeyValue{
		attribute.String("server.address", "a.example"), attribute.String("url.full", "http://a.example/page"), attribute.Int64("frontier.crawl", 7),
		attribute.Int("frontier.attempt", 1), attribute.String("frontier.result", "failed"), attribute.String("error.type", "timeout"),
	} {
		assert.Contains(t, span.Attributes(), want)
	}

	_, end = StartLease(t.Context(), tracer, l)
	end(frontier.Outcome{})
	span = spans.Ended()[2]
	assert.Equal(t, codes.Unset, span.Status().Code)
	assert.False(t, span.EndTime().IsZero())
}
