// This file records the request as it was sent.

package fetch

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
)

// requestHead collects a request's fields as net/http writes them.
type requestHead struct {
	req   *http.Request
	shown http.Header // fields that are shown otherwise than they are written, each once

	mu     sync.Mutex // HTTP/2 writes them from another goroutine
	fields bytes.Buffer
	host   string // of HTTP/2
}

func (h *requestHead) trace() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{WroteHeaderField: func(key string, values []string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		name := http.CanonicalHeaderKey(key)
		if other, ok := h.shown[name]; ok {
			values, h.shown[name] = other, nil // HTTP/2 writes each cookie in a field of its own
		}
		for _, v := range values {
			switch {
			case key == ":authority":
				h.host = v
			case !strings.HasPrefix(key, ":"):
				fmt.Fprintf(&h.fields, "%s: %s\r\n", key, v)
			}
		}
	}}
}

// bytes returns the head as far as it was written; nil if nothing was.
func (h *requestHead) bytes() []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fields.Len() == 0 {
		return nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", h.req.Method, h.req.URL.RequestURI())
	if h.host != "" {
		fmt.Fprintf(&b, "Host: %s\r\n", h.host)
	}
	b.Write(h.fields.Bytes())
	b.WriteString("\r\n")
	return b.Bytes()
}
