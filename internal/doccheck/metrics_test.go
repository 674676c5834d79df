// This file compares docs/metrics.md with what is published and logged.

package doccheck

import (
	"context"
	"fmt"
	"go/ast"
	"go/token"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/figures"
	"github.com/seed-7440039f/frontier/fleet"
	"github.com/seed-7440039f/frontier/importance"
	"github.com/seed-7440039f/frontier/metrics"
)

// product is what users run: neither programs about the library nor what is copied.
func product(path string) bool {
	path = filepath.ToSlash(path)
	for _, other := range []string{"bench", "proof", "examples", "internal", "crawler/differ", "crawler/realweb", "crawler/suites"} {
		if strings.HasPrefix(path, root+"/"+other+"/") {
			return false
		}
	}
	return !strings.HasSuffix(path, "_test.go")
}

// between replaces what a document has between two comments.
func between(t *testing.T, text, name, table string) string {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(text, begin)
	require.True(t, ok, name)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, name)
	return before + begin + table + end + after
}

// published are the keys of a frontier's expvar, those by priority once.
func published(v slog.Value, prefix string) (keys []string) {
	for _, a := range v.Group() {
		key := prefix + a.Key
		if n, err := strconv.Atoi(a.Key); err == nil {
			if n > 1 {
				continue
			}
			key = strings.TrimSuffix(prefix, ".") + ".N"
		}
		if x := a.Value.Resolve(); x.Kind() == slog.KindGroup {
			keys = append(keys, published(x, key+".")...)
		} else {
			keys = append(keys, key+" "+strings.ToLower(x.Kind().String()))
		}
	}
	return keys
}

// comments returns the comments of the fields of a struct, by field name.
func comments(t *testing.T, file, name string) map[string]string {
	t.Helper()
	_, files := sources(t, root, func(path string) bool { return path == filepath.Join(root, file) })
	all := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			x, ok := n.(*ast.TypeSpec)
			if !ok || x.Name.Name != name {
				return true
			}
			for _, field := range x.Type.(*ast.StructType).Fields.List {
				for _, n := range field.Names {
					all[n.Name] = strings.TrimSpace(field.Comment.Text())
				}
			}
			return false
		})
	}
	require.NotEmpty(t, all)
	return all
}

// camel is the field of a key.
func camel(key string) (name string) {
	for _, part := range strings.Split(key, "_") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	return name
}

// statsTable has a line for each key that is published.
func statsTable(t *testing.T) string {
	f, err := frontier.Open(context.Background(), frontier.Options{})
	require.NoError(t, err)
	defer f.Close()
	says := comments(t, "watch.go", "Stats")
	rates := map[string]string{"rates.added": "URLs admitted", "rates.handed_out": "leases", "rates.done": "leases that ended by Done or expired"}
	parts := map[string]string{"count": "durations counted", "mean_s": "their mean", "p50_s": "half of them are at most this", "p90_s": "nine of ten are at most this", "p99_s": "99 of 100 are at most this"}
	units := map[string]string{"int64": "count", "float64": "number"}
	var b strings.Builder
	b.WriteString("| key | unit | meaning |\n|---|---|---|\n")
	for _, k := range published(f.Stats().LogValue(), "") {
		at := strings.LastIndex(k, " ")
		key, kind := k[:at], k[at+1:]
		first, rest, _ := strings.Cut(key, ".")
		unit, meaning := units[kind], says[camel(first)]
		require.NotEmpty(t, unit, k)
		require.NotEmpty(t, meaning, k)
		last := key[strings.LastIndex(key, ".")+1:]
		switch {
		case rates[key] != "":
			unit, meaning = "number, per second", rates[key]+", over the last minute"
		case parts[last] != "" && first != "done":
			meaning += ": " + parts[last]
			if strings.HasSuffix(last, "_s") {
				unit = "number, seconds"
			}
		case first == "done":
			meaning = "Done calls with the result " + strings.ReplaceAll(rest, "_", " ")
		case strings.Contains(meaning, "bytes"):
			unit = "bytes"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", key, unit, meaning)
	}
	return b.String()
}

// figuresTable has a line for each figure of package metrics, of a crawler and of an Estimator.
func figuresTable(t *testing.T) string {
	f, err := frontier.Open(context.Background(), frontier.Options{})
	require.NoError(t, err)
	defer f.Close()
	c, err := crawler.New(f, crawler.Options{})
	require.NoError(t, err)
	est, err := importance.New(importance.Options{Score: importance.Trust, Memory: 4096})
	require.NoError(t, err)
	all := slices.Concat(figures.Of(c, f, metrics.Options{}).Metrics(), importance.Figures(est).Metrics(), fleet.Figures(nil).Metrics(), metrics.NewHooks().Metrics())
	types := map[metrics.Kind]string{metrics.Counter: "counter", metrics.Level: "gauge", metrics.State: "gauge", metrics.Histogram: "histogram"}
	var b strings.Builder
	b.WriteString("| name | type | label | OpenTelemetry | meaning |\n|---|---|---|---|---|\n")
	for _, m := range append(all, metrics.Recorded()...) {
		label := ""
		if m.Label != "" {
			label = "`" + m.Label + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | `%s`, %s | %s |\n", m.Name, types[m.Kind], label, m.OTel, m.Unit, strings.TrimSuffix(m.Help, "."))
	}
	return b.String()
}

var loggers = regexp.MustCompile(`^(log|[lL]ogger)$`)

// literal is the text of a string literal.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// logged are the keys of all log calls, except for events and badger's messages.
func logged(t *testing.T) (keys []string) {
	set, files := sources(t, root, product)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		ast.Inspect(files[path], func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			method, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, method.Sel.Name) || len(call.Args) == 0 {
				return true
			}
			of := ""
			switch x := method.X.(type) {
			case *ast.Ident:
				of = x.Name
			case *ast.SelectorExpr:
				of = x.Sel.Name
			}
			if !loggers.MatchString(of) || strings.HasSuffix(path, "badger.go") {
				return true
			}
			for i := 1; i < len(call.Args); i += 2 {
				key, ok := literal(call.Args[i])
				if assert.True(t, ok, "%s: a key that is no literal", set.Position(call.Args[i].Pos())) {
					keys = append(keys, key)
				}
			}
			return true
		})
	}
	return keys
}

// eventKeys are the keys of events.
func eventKeys(t *testing.T) (keys []string) {
	_, files := sources(t, root, func(path string) bool { return path == filepath.Join(root, "event", "event.go") })
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.FuncDecl)
			if !ok || d.Name.Name != "Attrs" {
				return true
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && len(call.Args) > 0 {
					if key, ok := literal(call.Args[0]); ok {
						keys = append(keys, key)
					}
				}
				return true
			})
			return false
		})
	}
	require.NotEmpty(t, keys)
	return keys
}

var keyRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")

// Every key that is published or logged is documented, and no other.
func TestFiguresAreDocumented(t *testing.T) {
	page := filepath.Join(root, "docs", "metrics.md")
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	used := append(logged(t), eventKeys(t)...)
	slices.Sort(used)
	_, logs, _ := strings.Cut(string(b), "\n## slog\n")
	var told []string
	for _, m := range keyRow.FindAllStringSubmatch(logs, -1) {
		told = append(told, m[1])
	}
	assert.Equal(t, slices.Compact(used), told)

	want := between(t, between(t, string(b), "stats", statsTable(t)), "figures", figuresTable(t))
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	assert.Equal(t, want, string(b), "write it with: go test -run Figures ./internal/doccheck -frontier.update")
}
