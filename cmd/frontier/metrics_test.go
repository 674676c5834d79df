// This file tests what Prometheus gets of a crawl.

package main

import (
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var metricsURL = regexp.MustCompile(`the crawl has metrics" url=(\S+)`)

// startMeasured starts a crawl that holds, and returns where its metrics are.
func startMeasured(t *testing.T, more ...string) (r *running, url string) {
	t.Helper()
	r = startCrawl(t, append(more, "-metrics-listen", "127.0.0.1:0")...)
	m := metricsURL.FindStringSubmatch(r.log.String())
	require.NotNil(t, m, r.log)
	return r, m[1]
}

// got is what a URL answers.
func got(t require.TestingT, url string) (status int, body string) {
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(b)
}

// The port of the metrics has them and nothing else; the page has them, too.
func TestMetrics(t *testing.T) {
	r, url := startMeasured(t)
	status, body := got(t, url)
	require.Equal(t, http.StatusOK, status)
	for _, line := range []string{
		"frontier_leases_out 2", "frontier_crawler_workers_busy 0", "frontier_contacts_early_total 0",
		`frontier_fetches_total{status_class="4xx"} 2`, // for robots.txt
		`frontier_fetch_duration_seconds_count 2`, "frontier_memory_budget_bytes 5.36870912e+08", "frontier_store_failing 0",
	} {
		assert.Contains(t, body, "\n"+line+"\n")
	}
	for _, name := range []string{"frontier_disk_bytes", "frontier_disk_free_bytes", "process_cpu_seconds_total", "go_goroutines"} {
		assert.Contains(t, body, "\n"+name+" ")
	}
	assert.NotContains(t, body, ".example", "no label has a host")

	status, _ = got(t, strings.TrimSuffix(url, "metrics")+"api/status")
	assert.Equal(t, http.StatusNotFound, status)
	page := regexp.MustCompile(`the crawl has a page" url="?(http://[^/]+/)`).FindStringSubmatch(r.log.String())
	require.NotNil(t, page)
	status, body = got(t, page[1]+"metrics")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "\nfrontier_leases_out 2\n")
	r.end(t)
}

// A crawl without a page has metrics if they are wanted.
func TestMetricsWithoutAPage(t *testing.T) {
	r, url := startMeasured(t, "-page", "off")
	status, _ := got(t, url)
	assert.Equal(t, http.StatusOK, status)
	r.end(t)
}

// A crawl with an order of its own says what it knows.
func TestMetricsOfAnOrder(t *testing.T) {
	r, url := startMeasured(t, "-order", "trust", "-memory", "128M")
	_, body := got(t, url)
	for _, name := range []string{"frontier_importance_links_total", "frontier_importance_notes_total", "frontier_importance_covered"} {
		assert.Contains(t, body, "\n"+name+" 0\n")
	}
	_, out, stderr := operate(t, "status", "-dir", r.dir)
	assert.Regexp(t, `links_found +0\n.*\n?covered +0`, out, stderr)
	r.end(t)
}

// An address that was asked for must be had.
func TestMetricsAddressThatIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	status, _, stderr := operate(t, "crawl", "-page", "off", "-metrics-listen", l.Addr().String(), "http://a.example/")
	assert.Equal(t, exitUsage, status)
	assert.Contains(t, stderr, "-metrics-listen "+l.Addr().String()+" cannot be had")
}
