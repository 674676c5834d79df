// This file traces leases.

package frontierotel

import (
	"context"
	"net/url"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed-7440039f/frontier"
)

// StartLease starts a span that begins with the hand-out of a lease. Spans of fetches under
// the context that it returns belong to it. End it with the outcome that Done gets:
//
//	ctx, end := frontierotel.StartLease(ctx, tracer, l)
//	outcome := fetch(ctx, l)
//	err := f.Done(l, outcome)
//	end(outcome)
//
// Its attributes have the host and the URL, without a user and a password: unlike a metric, a span may.
func StartLease(ctx context.Context, tracer trace.Tracer, l frontier.Lease) (_ context.Context, end func(frontier.Outcome)) {
	about := []attribute.KeyValue{
		attribute.String("server.address", l.Host), attribute.Int("frontier.priority", l.Priority),
		attribute.Int("frontier.attempt", l.Attempt), attribute.Int64("frontier.crawl", int64(l.Entry.Crawl)),
	}
	if u, err := url.Parse(l.Entry.URL); err == nil && !l.ContactOnly() {
		u.User = nil
		about = append(about, attribute.String("url.full", u.String()))
	}
	if !l.Due.IsZero() {
		about = append(about, attribute.Float64("frontier.contact.lateness", l.LeasedAt.Sub(l.Due).Seconds()))
	}
	ctx, span := tracer.Start(ctx, "frontier.lease", trace.WithTimestamp(l.LeasedAt), trace.WithAttributes(about...))
	return ctx, func(o frontier.Outcome) {
		span.SetAttributes(attribute.String("frontier.result", o.Result.String()))
		if o.Result == frontier.Failed {
			span.SetAttributes(attribute.String("error.type", o.Failure.String()))
			span.SetStatus(codes.Error, o.Failure.String())
		}
		if o.Ended.IsZero() {
			span.End()
			return
		}
		span.End(trace.WithTimestamp(o.Ended))
	}
}
