package figures

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seen has what was read, by name and label.
type seen map[string]float64

func (s seen) Number(m *metrics.Metric, label string, v float64) { s[m.Name+" "+label] = v }

func (s seen) Histogram(m *metrics.Metric, label string, d *metrics.Distribution) {
	s[m.Name+" "+label] = float64(d.Count)
}

// Everything in Progress is a figure; a field that is added later must become one.
func TestProgressIsFigures(t *testing.T) {
	without := map[string]string{
		"Elapsed": "process_start_time_seconds says it", "Trouble": "a text, which the log has",
		"Bytes": "frontier_fetched_bytes_total", "Frontier": "figures of their own",
	}
	var p crawler.Progress
	v, unique, wanted := reflect.ValueOf(&p).Elem(), int64(1000), map[int64]string{}
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		if without[name] != "" {
			continue
		}
		unique++
		switch x := v.Field(i); x.Interface().(type) {
		case int64:
			x.SetInt(unique)
		case time.Duration:
			x.SetInt(unique * int64(time.Second))
		case time.Time:
			x.Set(reflect.ValueOf(time.Now()))
			continue // Away: below
		case map[string]int64:
			x.Set(reflect.ValueOf(map[string]int64{"rule": unique}))
		default:
			t.Fatalf("Progress.%s has no figure", name)
		}
		wanted[unique] = name
	}
	got := seen{}
	read(&p, got)
	assert.EqualValues(t, 1, got["frontier_crawler_outage "])
	for _, n := range got {
		delete(wanted, int64(n))
	}
	assert.Empty(t, wanted)
}

// A filter of the user's may have any number of rules; the figures have not.
func TestRulesAreBounded(t *testing.T) {
	p := crawler.Progress{FilteredBy: map[string]int64{}}
	for i := range 1000 {
		p.FilteredBy[fmt.Sprintf("rule%04d", i)] = 2
	}
	got := seen{}
	read(&p, got)
	assert.EqualValues(t, 2, got["frontier_crawler_filtered_total rule0063"])
	assert.NotContains(t, got, "frontier_crawler_filtered_total rule0064")
	assert.EqualValues(t, 2*(1000-maxRules), got["frontier_crawler_filtered_total other"])
}

// The Source of a crawler has the figures of its frontier, too, and lists what it reads.
func TestOf(t *testing.T) {
	f, err := frontier.Open(t.Context(), frontier.Options{})
	require.NoError(t, err)
	defer f.Close()
	h := metrics.NewHooks()
	c, err := crawler.New(f, crawler.Options{OnFetch: OnFetch(h), Workers: 1})
	require.NoError(t, err)
	_, err = f.Add(t.Context(), frontier.Entry{URL: "http://a.example/"})
	require.NoError(t, err)
	s, got := Of(c, f, metrics.Options{MemoryBudget: 1}), seen{}
	s.Read(got)
	assert.EqualValues(t, 1, got["frontier_urls_added_total "])
	assert.Contains(t, got, "frontier_crawler_workers_busy ")
	listed := map[string]bool{}
	for _, m := range s.Metrics() {
		assert.False(t, listed[m.Name], "%s is there twice", m.Name)
		listed[m.Name] = true
	}

	now := time.Now()
	OnFetch(h)("http://a.example/", &fetch.Result{Status: 404, Bytes: 9, Started: now, Ended: now.Add(time.Second)}, nil)
	h.Read(got)
	assert.EqualValues(t, 1, got["frontier_fetches_total 4xx"])
	assert.EqualValues(t, 9, got["frontier_fetched_bytes_total "])
}
