// This file tests the dashboard and the alerts in packaging, with a Prometheus if there is one.

package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const packaged = "../../packaging"

// dashboard is what the tests look at of Grafana's model.
type dashboard struct {
	UID           string
	SchemaVersion int
	Templating    struct{ List []struct{ Name, Type string } }
	Panels        []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ H, W, X, Y int }
	Datasource struct{ Type, UID string }
	Targets    []struct {
		RefID, Expr string
		Datasource  struct{ Type, UID string }
	}
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(packaged, "grafana", "frontier.json"))
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(b, &d))
	return d
}

// alertRules are the names and expressions of the alerts.
func alertRules(t *testing.T) (names []string, text string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(packaged, "prometheus", "frontier.rules.yml"))
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^ *- alert: (\w+)$`).FindAllStringSubmatch(string(b), -1) {
		names = append(names, m[1])
	}
	for _, m := range regexp.MustCompile(`(?m)^( *)expr: ?(?:\|\n((?:.*\n)*?)^ *labels|(.*))`).FindAllStringSubmatch(string(b), -1) {
		text += m[2] + m[3] + "\n"
	}
	return names, text
}

var metricName = regexp.MustCompile(`\b(frontier|process|go)_[a-z_]+\b`)

// usedBy are the metrics that an expression reads. A native histogram has the name of its family.
func usedBy(expr string) []string { return metricName.FindAllString(expr, -1) }

// Panels are well formed: numbered, placed side by side, and read from the data source that the
// user chooses.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	assert.NotZero(t, d.SchemaVersion)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	var rows []string
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID] || p.ID == 0, "%s: id %d", p.Title, p.ID)
		ids[p.ID] = true
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Empty(t, taken[at], "%s lies on another panel", p.Title)
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			rows = append(rows, p.Title)
			continue
		}
		assert.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			assert.Equal(t, "${datasource}", q.Datasource.UID, p.Title)
			assert.Contains(t, q.Expr, `{job=~"$job", instance=~"$instance"`, p.Title)
		}
	}
	assert.Equal(t, []string{"Crawl", "Politeness", "Hosts in trouble", "Store and memory", "Process"}, rows)
	assert.Len(t, d.Templating.List, 3)
}

// Every metric that the dashboard and the alerts read is in a scrape, and docs/metrics.md has every alert.
func TestDashboardAndAlertsReadWhatIsPublished(t *testing.T) {
	r, address := startMeasured(t)
	_, scrape := got(t, address)
	r.end(t)
	published := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`).FindAllStringSubmatch(scrape, -1) {
		published[m[1]] = true
		if m[2] == "histogram" {
			published[m[1]+"_bucket"] = true
		}
	}
	names, alerts := alertRules(t)
	require.Greater(t, len(names), 10)
	exprs := alerts
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			exprs += q.Expr + "\n"
		}
	}
	used := usedBy(exprs)
	require.Greater(t, len(used), 60)
	for _, name := range used {
		assert.True(t, published[name], "%s is not in a scrape", name)
	}
	page, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	for _, name := range names {
		assert.Contains(t, string(page), "| `"+name+"` |")
	}
}

// tool is the path of one of Prometheus' programs. CI must have it.
func tool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no %s here: Debian's package prometheus has it", name)
	}
	require.NoError(t, err)
	return path
}

func runTool(t *testing.T, stdin string, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), tool(t, name), args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, "%s %v\n%s", name, args, out)
}

// The alerts fire when they should, by their own tests.
func TestAlerts(t *testing.T) {
	at := filepath.Join(packaged, "prometheus")
	runTool(t, "", "promtool", "check", "config", filepath.Join(at, "prometheus.yml"))
	runTool(t, "", "promtool", "check", "rules", filepath.Join(at, "frontier.rules.yml"))
	runTool(t, "", "promtool", "test", "rules", filepath.Join(at, "frontier.rules_test.yml"))
	names, _ := alertRules(t)
	tests, err := os.ReadFile(filepath.Join(at, "frontier.rules_test.yml"))
	require.NoError(t, err)
	for _, name := range names {
		assert.Regexp(t, `alertname: `+name+"\n *exp_alerts", string(tests), "no test lets it fire")
	}
}

// startPrometheus scrapes an address twice a second, judges it by the alerts, and returns where
// it answers.
func startPrometheus(t *testing.T, target string, flags ...string) (api string) {
	t.Helper()
	dir := t.TempDir()
	rules, err := filepath.Abs(filepath.Join(packaged, "prometheus", "frontier.rules.yml"))
	require.NoError(t, err)
	config := filepath.Join(dir, "prometheus.yml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs: [{job_name: frontier, static_configs: [{targets: [%q]}]}]
`, rules, target), 0o644))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	var log lockedBuffer
	cmd := exec.Command(tool(t, "prometheus"), append(flags, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		assert.NoError(t, <-ended, log.String())
	})
	require.Eventually(t, func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}, time.Minute, 50*time.Millisecond, "%s", &log)
	return "http://" + address + "/api/v1/"
}

// shownBy are the series that an expression has now; the error is Prometheus'.
func shownBy(t require.TestingT, api, expr string) (found []json.RawMessage, failed string) {
	_, body := got(t, api+"query?query="+url.QueryEscape(expr))
	var answer struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &answer), body)
	return answer.Data.Result, answer.Error
}

// A real Prometheus takes a scrape without complaint, with classic histograms and with native ones, has
// something to show in every panel, and evaluates every alert; none fires.
func TestPrometheus(t *testing.T) {
	for name, flags := range map[string][]string{"classic": nil, "native": {"--enable-feature=native-histograms"}} {
		t.Run(name, func(t *testing.T) {
			tool(t, "prometheus")
			r, address := startMeasured(t)
			_, scrape := got(t, address)
			runTool(t, scrape, "promtool", "check", "metrics")
			target, err := url.Parse(address)
			require.NoError(t, err)
			api := startPrometheus(t, target.Host, flags...)
			variables := strings.NewReplacer("$job", "frontier", "$instance", ".+", "$__rate_interval", "1m")
			for _, p := range readDashboard(t).Panels {
				for _, q := range p.Targets {
					expr := variables.Replace(q.Expr)
					assert.EventuallyWithT(t, func(t *assert.CollectT) {
						found, failed := shownBy(t, api, expr)
						assert.Empty(t, failed)
						assert.NotEmpty(t, found) // once there are two samples
					}, time.Minute, 100*time.Millisecond, "%s shows nothing: %s", p.Title, expr)
				}
			}
			native, _ := shownBy(t, api, "frontier_fetch_duration_seconds")
			assert.Equal(t, name == "native", len(native) > 0)
			names, _ := alertRules(t)
			assert.EventuallyWithT(t, func(t *assert.CollectT) {
				_, body := got(t, api+"rules")
				assert.Equal(t, len(names), strings.Count(body, `"health":"ok"`), body)
			}, time.Minute, 100*time.Millisecond)
			firing, failed := shownBy(t, api, `ALERTS{alertstate="firing"}`)
			assert.Empty(t, failed)
			assert.Empty(t, firing)
			r.end(t)
		})
	}
}
