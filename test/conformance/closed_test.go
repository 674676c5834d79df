// This file makes every call after Close.

package conformance

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// After Close every call fails with ErrClosed, and those that cannot fail answer.
func TestEveryCallAfterClose(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{}, func(t *testing.T, w *harness.World) {
		w.AddMany("a.example", 3)
		l := w.Next()
		f := w.F
		require.NoError(t, f.Close())
		ctx := context.Background()
		s := scope.Host("a.example")
		errs := map[string]error{}
		two := func(name string) func(any, error) { return func(_ any, err error) { errs[name] = err } }
		two("Add")(f.Add(ctx, frontier.Entry{URL: "http://b.example/"}))
		two("Add none")(f.Add(ctx))
		two("CrawlNow")(f.CrawlNow(ctx, frontier.Entry{URL: "http://b.example/"}))
		two("Next")(f.Next(ctx))
		_, _, errs["TryNext"] = f.TryNext()
		two("Contact")(f.Contact(ctx, "a.example"))
		errs["Done"] = f.Done(l, frontier.Outcome{})
		two("HandBack")(f.HandBack(l))
		errs["Extend"] = f.Extend(&l, time.Minute)
		errs["Join"] = f.Join(&l, "g")
		errs["Assign"] = f.Assign("a.example", "g")
		errs["SetGroup"] = f.SetGroup("g", frontier.GroupSettings{Concurrency: 2})
		errs["Pause"] = f.Pause(s)
		errs["Resume"] = f.Resume(s)
		errs["BlockUntil"] = f.BlockUntil(s, harness.Dawn.Add(time.Hour))
		errs["SetDelay"] = f.UpdateRule(s, func(r *frontier.Rule) { r.Delay = frontier.FixedDelay(time.Millisecond) })
		errs["SetConcurrency"] = f.UpdateRule(s, func(r *frontier.Rule) { r.Concurrency = 2 })
		errs["SetPriority"] = f.UpdateRule(s, func(r *frontier.Rule) { r.Priority = 2 })
		errs["Reprioritize"] = f.UpdateRule(s, func(r *frontier.Rule) { r.Priorities[2] = 3 })
		errs["SetLimits"] = f.UpdateRule(s, func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1} })
		errs["SetHostLimits"] = f.UpdateRule(s, func(r *frontier.Rule) { r.HostLimits = scope.Limits{Served: 1} })
		errs["weight of a crawl"] = f.UpdateRule(scope.Crawl(1), func(r *frontier.Rule) { *r = frontier.Rule{Weight: 2} })
		errs["limits of a crawl"] = f.UpdateRule(scope.Crawl(1), func(r *frontier.Rule) { r.Limits = scope.Limits{Served: 1} })
		errs["SetRule"] = f.UpdateRule(s, func(rule *frontier.Rule) { *rule = frontier.Rule{Concurrency: 1} })
		errs["Clear"] = f.Clear(s)
		errs["Forget"] = f.Forget("a.example")
		two("Delete")(f.Delete(ctx, s))
		two("Delete of a crawl")(f.Delete(ctx, scope.Crawl(1)))
		two("Host")(inspect.New(f).Host(ctx, "a.example"))
		two("Status")(inspect.New(f).Status(ctx, frontier.Entry{URL: "http://a.example/1"}))
		two("Upcoming")(inspect.New(f).Upcoming(ctx, 3, true))
		errs["Export"] = transfer.Export(ctx, f, &strings.Builder{}, transfer.ExportOptions{})
		two("Import")(transfer.Import(ctx, f, strings.NewReader("http://a.example/"), transfer.ImportOptions{}))
		errs["Drain"] = f.Drain(ctx)
		for _, err := range inspect.New(f).URLs(ctx, s, "") {
			errs["URLs"] = err
		}
		for _, err := range inspect.New(f).Scan(ctx, scope.All()) {
			errs["Scan"] = err
		}
		for name, err := range errs {
			assert.ErrorIs(t, err, frontier.ErrClosed, name)
		}
		f.Stats()
		inspect.New(f).Group("g")
		inspect.New(f).Crawl(0)
		inspect.New(f).Crawls()
		inspect.New(f).Used(s)
		f.Rule(s)
		f.RuleOf("a.example")
		f.DelayOf("a.example")
		for range f.Rules() {
		}
		for range inspect.New(f).Hosts(s, "") {
		}
		for range inspect.New(f).HostNames(s, "") {
		}
		inspect.New(f).Largest(3)
		require.NoError(t, f.Close())
		w.F = nil
		w.Open()
	})
}
