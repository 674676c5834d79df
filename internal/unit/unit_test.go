package unit_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/client"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/backup"
	"github.com/seed-7440039f/frontier/crawler/dns"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/incremental"
	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/fleet/crossing"
	"github.com/seed-7440039f/frontier/polite"
	"github.com/seed-7440039f/frontier/recrawl"
	"github.com/seed-7440039f/frontier/scope"
	"github.com/seed-7440039f/frontier/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// refused has what must not take 10 ns, with a use of that.
func refused(t *testing.T) map[string]func() error {
	f, err := frontier.Open(t.Context(), frontier.Options{KeepOpen: true})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, f.Check())
		assert.NoError(t, f.Close())
	})
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	require.NoError(t, err)
	l, err := f.Next(t.Context())
	require.NoError(t, err)
	remote, err := client.New("http://localhost:1", client.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, remote.Close()) })
	fetcher, err := fetch.New(fetch.Options{})
	require.NoError(t, err)

	open := func(o frontier.Options) error {
		f, err := frontier.Open(t.Context(), o)
		if err == nil {
			err = f.Close()
		}
		return err
	}
	uses := map[string]func() error{
		"frontier.FactorDelay":     func() error { return open(frontier.Options{Delay: frontier.FactorDelay(1, 10, 30)}) },
		"frontier.FixedDelay":      func() error { return open(frontier.Options{GroupDelay: frontier.FixedDelay(10)}) },
		"frontier.Retries":         func() error { return open(frontier.Options{Retry: frontier.Retries(3, 10)}) },
		"frontier.Frontier.Extend": func() error { return f.Extend(&l, 10) },
		"client.Client.Extend":     func() error { return remote.Extend(&l, 10) },
		"fetch.Request.Timeout": func() error {
			_, err := fetcher.Fetch(t.Context(), fetch.Request{URL: "http://localhost/", Timeout: 10})
			return err
		},
	}
	each(uses, "fleet.Options", func(o fleet.Options) error {
		_, err := fleet.Join(t.Context(), o)
		return err
	})
	each(uses, "crossing.Node", func(n crossing.Node) error { return (*crossing.Crossing)(nil).Run(t.Context(), n) })
	each(uses, "frontier.Options", open)
	each(uses, "frontier.Backoff", func(b frontier.Backoff) error { return open(frontier.Options{Backoff: b}) })
	each(uses, "frontier.Quarantine", func(q frontier.Quarantine) error { return open(frontier.Options{Quarantine: q}) })
	each(uses, "scope.Limits", func(x scope.Limits) error {
		return f.UpdateRule(scope.Host("a.example"), func(r *frontier.Rule) { r.Limits = x })
	})
	each(uses, "frontier.TakeOptions", func(o frontier.TakeOptions) error {
		_, err := f.Take(t.Context(), o)
		return err
	})
	each(uses, "frontier.Outcome", func(o frontier.Outcome) error { return f.Done(l, o) })
	each(uses, "client.Options", func(o client.Options) error {
		_, err := client.New("http://localhost:1", o)
		return err
	})
	each(uses, "crawler.Options", func(o crawler.Options) error {
		_, err := crawler.New(f, o)
		return err
	})
	each(uses, "backup.Options", func(o backup.Options) error {
		_, err := backup.New(o)
		return err
	})
	each(uses, "dns.Options", func(o dns.Options) error {
		_, err := dns.New(o)
		return err
	})
	each(uses, "fetch.Options", func(o fetch.Options) error {
		_, err := fetch.New(o)
		return err
	})
	each(uses, "incremental.Options", func(o incremental.Options) error {
		_, err := incremental.Open(o)
		return err
	})
	each(uses, "recrawl.Options", func(o recrawl.Options) error {
		_, err := recrawl.New(o)
		return err
	})
	each(uses, "serve.Options", func(o serve.Options) error {
		_, err := serve.New(f, o)
		return err
	})
	ask := func(x *polite.Transport) error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost:1/", nil)
		require.NoError(t, err)
		_, err = x.RoundTrip(r) //nolint:bodyclose // an error
		return err
	}
	uses["polite.Robots.TTL"] = func() error { return ask(&polite.Transport{Frontier: f, Robots: &polite.Robots{TTL: 10}}) }
	uses["polite.Robots.MaxCrawlDelay"] = func() error {
		_, err := (&polite.Robots{MaxCrawlDelay: 10}).Allowed(t.Context(), nil, "http://localhost:1/")
		return err
	}
	uses["polite.Transport.MaxWait"] = func() error { return ask(&polite.Transport{Frontier: f, MaxWait: 10}) }
	uses["polite.Transport.Timeout"] = func() error { return ask(&polite.Transport{Frontier: f, Timeout: 10}) }
	return uses
}

// each adds a use of each exported duration of O.
func each[O any](to map[string]func() error, name string, use func(O) error) {
	for f := range reflect.TypeFor[O]().Fields() {
		if f.Type == reflect.TypeFor[time.Duration]() && f.IsExported() {
			to[name+"."+f.Name] = func() error {
				var o O
				reflect.ValueOf(&o).Elem().FieldByIndex(f.Index).SetInt(10)
				return use(o)
			}
		}
	}
}

// taken has what takes 10 ns, with the reason.
var taken = map[string]string{
	"frontier.Outcome.Duration":      "it is measured: a page may come from a cache",
	"frontier.Lease.Gap":             "the frontier sets it",
	"inspect.Host.CrawlDelay":        "the frontier sets it",
	"inspect.Backoff.Gap":            "the frontier sets it",
	"frontier.Histogram.Sum":         "the frontier sets it",
	"crawler.Progress.Elapsed":       "the crawler sets it",
	"crawler.Progress.Lookup":        "the crawler sets it",
	"crawler.Progress.Fetching":      "the crawler sets it",
	"fetch.Result.RetryAfter":        "the web sets it",
	"fetch.Timing.DNS":               "it is measured",
	"fetch.Timing.Connect":           "it is measured",
	"fetch.Timing.TLS":               "it is measured",
	"fetch.Timing.Header":            "it is measured",
	"fetch.Timing.Body":              "it is measured",
	"metrics.Hooks.Fetch":            "it is measured",
	"console.Ago":                    "it is shown",
	"plan.Live":                      "it makes a model, whose figures show it",
	"simclock.Clock.Advance":         "time in steps of any size is what the clock is for",
	"simclock.Clock.Step":            "as Advance",
	"simclock.Clock.AfterFunc":       "the frontier calls it",
	"urlfrontier.Options.Wait":       elsewhere,
	"urlfrontier.Options.MinDelay":   elsewhere,
	"urlfrontier.Options.ListingAge": elsewhere,
	"urlfrontier.RouterOptions.Wait": elsewhere,
	"urlfrontier.RouterOptions.Away": elsewhere,
	"urlfrontier.Server.Stop":        elsewhere,
	"urlfrontier.Router.Stop":        elsewhere,
	"chromedp.Options.Quiet":         elsewhere,
	"chromedp.Options.Timeout":       elsewhere,
	"chromedp.Options.Pause":         elsewhere,
	"chromedp.Options.ScriptTTL":     elsewhere,
}

const elsewhere = "it is refused: TestUnits of its own module"

// TestUnits uses 10 ns in place of 10 s wherever a duration comes in.
func TestUnits(t *testing.T) {
	uses := refused(t)
	for name, use := range uses {
		if taken[name] == "" {
			assert.ErrorContains(t, use(), "is the unit missing?", name)
		}
	}
	for _, name := range exported(t, "../..") {
		if uses[name] == nil && taken[name] == "" {
			t.Errorf("%s: want a use that is refused, or a reason why it takes 10 ns", name)
		}
		delete(uses, name)
	}
	assert.Empty(t, slices.Collect(maps.Keys(uses)), "gone from the packages")
}

// exported lists the exported durations that functions take and structs have, in all packages that a
// program can import.
func exported(t *testing.T, root string) (names []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{"internal", "testdata", ".git", ".ci", "bench", "examples", "proof", "realweb", "test"}, d.Name()) {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil || file.Name.Name == "main" {
			return err
		}
		prefix := strings.TrimPrefix(file.Name.Name, "frontier")
		if prefix == "" {
			prefix = "frontier"
		}
		for _, x := range file.Decls {
			names = append(names, durations(prefix, x)...)
		}
		return nil
	}))
	return names
}

func durations(prefix string, x ast.Decl) (names []string) {
	switch x := x.(type) {
	case *ast.FuncDecl:
		name := prefix
		if x.Recv != nil {
			of := x.Recv.List[0].Type
			if p, ok := of.(*ast.StarExpr); ok {
				of = p.X
			}
			name = fmt.Sprintf("%s.%v", prefix, of)
			if id, ok := of.(*ast.Ident); ok && !id.IsExported() {
				return nil
			}
		}
		if x.Name.IsExported() && slices.ContainsFunc(x.Type.Params.List, isDuration) {
			names = append(names, name+"."+x.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range x.Specs {
			of, ok := s.(*ast.TypeSpec)
			if !ok || !of.Name.IsExported() {
				continue
			}
			fields, ok := of.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, f := range fields.Fields.List {
				for _, n := range f.Names {
					if isDuration(f) && n.IsExported() {
						names = append(names, prefix+"."+of.Name.Name+"."+n.Name)
					}
				}
			}
		}
	}
	return names
}

func isDuration(f *ast.Field) bool {
	s, ok := f.Type.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	from, ok := s.X.(*ast.Ident)
	return ok && from.Name == "time" && s.Sel.Name == "Duration"
}
