// This file is a fetcher: a process that takes leases from whichever node answers, fetches their pages
// from the web, and reports the ends. It keeps to the ends of its leases, and may be killed at any moment.

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// asFetcher in the environment makes a process a fetcher: its value is a fetcherOrder.
const asFetcher = "FRONTIER_FAULTS_FETCHER"

// fetcherOrder tells a fetcher what to do.
type fetcherOrder struct {
	Name    string   `json:"name"`
	Nodes   []string `json:"nodes"` // base URLs
	Web     string   `json:"web"`
	Workers int      `json:"workers"`
	Slow    float64  `json:"slow"`    // share of pages that are slow
	LeaseS  int      `json:"lease_s"` // 0: leaseTimes
	Shared  int      `json:"shared"`  // hosts that have an address in common
}

const (
	longLease = 29 * time.Second // asked for before a slow page
	leastLeft = 3 * time.Second  // a page is not begun with less of its lease
	endBefore = time.Second      // a page is broken off so long before the end of its lease
)

// leaseTimes are those that fetchers ask for, in seconds; 0: the nodes' own.
var leaseTimes = [...]int{0, 0, 6, 30}

// answer is what a node says about leases.
type answer struct {
	Leases []struct {
		Lease  string  `json:"lease"`
		URL    string  `json:"url"`
		LeaseS float64 `json:"lease_s"`
		SentS  float64 `json:"sent_s"`
	} `json:"leases"`
	Lease  string  `json:"lease"`
	LeaseS float64 `json:"lease_s"`
	SentS  float64 `json:"sent_s"`
}

type fetcher struct {
	fetcherOrder
	client *http.Client
}

// fetch is the whole life of a fetcher's process.
func fetch(order string) error {
	f := fetcher{client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	if err := json.Unmarshal([]byte(order), &f.fetcherOrder); err != nil {
		return err
	}
	var all sync.WaitGroup
	for i := range f.Workers {
		all.Go(func() { f.work(i % len(f.Nodes)) })
	}
	all.Wait()
	return nil
}

// work takes leases for ever.
func (f *fetcher) work(at int) {
	for {
		sent := time.Now()
		var got answer
		status, err := f.post(10*time.Second, f.Nodes[at]+"/v1/leases", fmt.Appendf(nil, `{"hosts":4,"max":4,"wait_s":3,"lease_s":%d}`, cmp.Or(f.LeaseS, leaseTimes[rand.IntN(len(leaseTimes))])), &got)
		if err != nil || status != http.StatusOK {
			f.note("leases through %d: status %d, %v", at, status, err)
			at = (at + 1) % len(f.Nodes)
			time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
			continue
		}
		read := time.Now()
		var all sync.WaitGroup
		for _, l := range got.Leases {
			all.Go(func() {
				v := visit{URL: l.URL, Fetcher: f.Name, Lease: l.Lease, Via: string(rune('a' + at)), LeasedAt: read, Until: sent.Add(seconds(l.SentS + l.LeaseS))}
				f.visit(at, v)
			})
		}
		all.Wait()
		if len(got.Leases) == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// visit fetches one page and ends its lease.
func (f *fetcher) visit(at int, v visit) {
	if rand.Float64() < f.Slow {
		f.extend(at, &v)
	}
	if !f.join(at, &v) || time.Until(v.Until) < leastLeft {
		f.done(at, v, []byte(`{"result":"requeue","uncontacted":true}`))
		return
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var links []string
	status, err := f.post(time.Until(v.Until)-endBefore, f.Web+"/fetch", body, &links)
	if err != nil || status != http.StatusOK {
		f.note("%s: status %d, %v", v.URL, status, err)
		return // the lease expires
	}
	end := struct {
		Result string              `json:"result"`
		Add    []map[string]string `json:"add,omitempty"`
	}{Result: "visited"}
	for _, l := range links {
		end.Add = append(end.Add, map[string]string{"url": l})
	}
	b, err := json.Marshal(end)
	if err != nil {
		panic(err)
	}
	if f.done(at, v, b) {
		if _, err := f.post(5*time.Second, f.Web+"/done", body, nil); err != nil {
			f.note("%s: the web does not know of its end: %v", v.URL, err)
		}
	}
}

// extend makes a lease longer and the page slow, if a node agrees.
func (f *fetcher) extend(at int, v *visit) {
	sent := time.Now()
	var got answer
	status, err := f.post(5*time.Second, f.Nodes[at]+"/v1/leases/"+v.Lease+"/extend", fmt.Appendf(nil, `{"lease_s":%v}`, longLease.Seconds()), &got)
	if err != nil || status != http.StatusOK || got.LeaseS == 0 {
		f.note("extend %s of %s through %d: status %d, %v", v.Lease, v.URL, at, status, err)
		return
	}
	v.Until = sent.Add(seconds(got.SentS + got.LeaseS))
	if most := time.Until(v.Until) - leastLeft; most > time.Second {
		v.HoldMS = most.Milliseconds() - rand.Int64N(most.Milliseconds()/2)
	}
}

// join makes the page's host wait for the others at its address. It reports whether the host may be contacted.
func (f *fetcher) join(at int, v *visit) bool {
	var host int
	if _, err := fmt.Sscanf(v.URL, "http://h%d.", &host); f.Shared == 1 || err != nil {
		return true
	}
	var got answer
	status, err := f.post(5*time.Second, f.Nodes[at]+"/v1/leases/"+v.Lease+"/join", fmt.Appendf(nil, `{"group":"198.51.100.%d"}`, host/f.Shared), &got)
	if err == nil && status == http.StatusOK {
		v.Lease = got.Lease
		return true
	}
	if status != http.StatusUnprocessableEntity {
		f.note("join %s of %s through %d: status %d, %v", v.Lease, v.URL, at, status, err)
	}
	return false
}

// done ends a lease through any node, and reports whether one acknowledged that.
func (f *fetcher) done(at int, v visit, body []byte) bool {
	for {
		status, err := f.post(5*time.Second, f.Nodes[at]+"/v1/leases/"+v.Lease+"/done", body, nil)
		switch {
		case err == nil && status == http.StatusOK:
			return true
		case err == nil && status < 500:
			f.note("end of %s of %s through %d: status %d", v.Lease, v.URL, at, status)
			return false
		case time.Until(v.Until) < 0:
			return false
		}
		at = (at + 1) % len(f.Nodes)
		time.Sleep(time.Duration(100+rand.IntN(200)) * time.Millisecond)
	}
}

// post sends JSON and reads the answer of a 200. A request is never sent twice by itself.
func (f *fetcher) post(most time.Duration, to string, body []byte, into any) (status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.GetBody = nil
	r.Header.Set("Content-Type", "application/json")
	a, err := f.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	b, err := io.ReadAll(a.Body)
	if err == nil && a.StatusCode == http.StatusOK && into != nil {
		err = json.Unmarshal(b, into)
	}
	if err == nil && a.StatusCode >= 400 && a.StatusCode != http.StatusServiceUnavailable && a.StatusCode != http.StatusConflict {
		err = errors.New(strings.TrimSpace(string(b)))
	}
	return a.StatusCode, err
}

func (f *fetcher) note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%s %s: %s\n", clock(time.Now()), f.Name, fmt.Sprintf(format, args...))
}
