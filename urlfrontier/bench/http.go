package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

const lines = 1000 // URLs per request

type web struct {
	at     string
	client *http.Client
}

// reach waits until the server is ready.
func reach(ctx context.Context, address string) (*web, error) {
	w := &web{"http://" + address, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	for until := time.Now().Add(patient); ; {
		err := w.do(ctx, http.MethodGet, "/readyz", "", nil, nil)
		if err == nil {
			return w, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return nil, fmt.Errorf("%s is not ready: %w", address, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (w *web) do(ctx context.Context, method, path, kind string, body io.Reader, answer func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, method, w.at+path, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", kind)
	response, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1000))
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	}
	if answer != nil {
		if err := answer(response.Body); err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, response.Body) // to reuse the connection
	return err
}

// httpAdd adds URLs, one per line.
func (b *bench) httpAdd(ctx context.Context) error {
	return b.timed(fmt.Sprintf("HTTP adds of %d", lines), func(*[]time.Duration) (int, error) {
		return b.urls, each(b.clients, func(client int) error {
			for i := b.urls * client / b.clients; i < b.urls*(client+1)/b.clients; i += lines {
				var body bytes.Buffer
				wrote := 0
				for j := i; j < min(i+lines, b.urls*(client+1)/b.clients); j++ {
					fmt.Fprintf(&body, "http://host%d.example/http/%d.html\n", j%b.hosts, j)
					wrote++
				}
				var sum struct{ New int }
				if err := b.web.do(ctx, http.MethodPost, "/v1/urls", "text/plain", &body, func(r io.Reader) error {
					return json.NewDecoder(r).Decode(&sum)
				}); err != nil {
					return err
				}
				if sum.New != wrote {
					return fmt.Errorf("%d of %d URLs were new: the server must be empty", sum.New, wrote)
				}
			}
			return nil
		})
	})
}

type lease struct {
	Lease string `json:"lease"`
}

func (w *web) lease(ctx context.Context, hosts, most int) ([]lease, error) {
	var got struct{ Leases []lease }
	body := fmt.Sprintf(`{"hosts":%d,"per_host":1,"max":%d,"lease_s":60,"wait_s":0}`, hosts, most)
	err := w.do(ctx, http.MethodPost, "/v1/leases", "application/json", strings.NewReader(body), func(r io.Reader) error {
		return json.NewDecoder(r).Decode(&got)
	})
	return got.Leases, err
}

// done ends leases, and fails unless the response has a line without an error for each.
func (w *web) done(ctx context.Context, leases []lease) error {
	var body bytes.Buffer
	for _, l := range leases {
		fmt.Fprintf(&body, "{\"lease\":%q,\"result\":\"visited\"}\n", l.Lease)
	}
	return w.do(ctx, http.MethodPost, "/v1/done", "application/x-ndjson", &body, func(r io.Reader) error {
		n := 0
		for s := bufio.NewScanner(r); s.Scan(); n++ {
			if bytes.Contains(s.Bytes(), []byte(`"error"`)) || bytes.Contains(s.Bytes(), []byte(`"status":4`)) {
				return fmt.Errorf("ending a lease: %s", s.Bytes())
			}
		}
		if n != len(leases) {
			return fmt.Errorf("%d leases, %d lines of answers", len(leases), n)
		}
		return nil
	})
}

// httpLease takes and ends a hundred leases at a time; the server must have no delays.
func (b *bench) httpLease(ctx context.Context) error {
	return b.timed(fmt.Sprintf("HTTP leases and ends of 100, %d clients", b.clients), func(*[]time.Duration) (int, error) {
		var total atomic.Int64
		until := time.Now().Add(b.span)
		err := each(b.clients, func(int) error {
			for time.Now().Before(until) {
				leases, err := b.web.lease(ctx, 100, 100)
				if err != nil {
					return err
				}
				if len(leases) == 0 {
					time.Sleep(time.Millisecond)
					continue
				}
				if err := b.web.done(ctx, leases); err != nil {
					return err
				}
				total.Add(int64(len(leases)))
			}
			return nil
		})
		if err == nil && total.Load() == 0 {
			err = errors.New("nothing was leased")
		}
		return int(total.Load()), err
	})
}

// httpIdle measures the request for one lease on an idle server.
func (b *bench) httpIdle(ctx context.Context) error {
	return b.timed("HTTP lease of 1, idle", func(laps *[]time.Duration) (int, error) {
		for range b.calls {
			began := time.Now()
			leases, err := b.web.lease(ctx, 1, 1)
			if err != nil {
				return 0, err
			}
			if len(leases) == 0 {
				return 0, errors.New("nothing was leased")
			}
			*laps = append(*laps, time.Since(began))
			if err := b.web.done(ctx, leases); err != nil {
				return 0, err
			}
		}
		return b.calls, nil
	})
}
