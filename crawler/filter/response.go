// This file judges answers by their header, before their body is read.

package filter

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-7440039f/frontier/internal/media"
)

// Response judges an answer.
type Response interface {
	// RefuseResponse returns why the body is not wanted, or the zero Reason.
	RefuseResponse(status int, h http.Header) Reason
}

// ResponseFunc makes a function a Response.
type ResponseFunc func(status int, h http.Header) Reason

// RefuseResponse calls the function.
func (f ResponseFunc) RefuseResponse(status int, h http.Header) Reason { return f(status, h) }

// ContentTypes refuses answers with a 2xx status whose media type is not in the list: "text/html",
// or "image/*". Answers with a missing or malformed type are not refused.
func ContentTypes(types ...string) Response {
	exact := set(types, strings.TrimSpace)
	return ResponseFunc(func(status int, h http.Header) Reason {
		t := media.Of(h).Essence
		if status/100 != 2 || t == "" {
			return Reason{}
		}
		top, _, _ := strings.Cut(t, "/")
		if exact[t] || exact[top+"/*"] || exact["*/*"] {
			return Reason{}
		}
		return refuse("content-type", "%.80q is not among those wanted", t)
	})
}

// NoMedia refuses answers with a 2xx status whose declared length is more than n bytes, as sent,
// and whose media type holds no links: videos, disk images. The beginning of such a file is useful
// only to an archive.
func NoMedia(n int64) Response {
	return ResponseFunc(func(status int, h http.Header) Reason {
		size, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
		if status/100 != 2 || err != nil || size <= n {
			return Reason{}
		}
		t := media.Of(h).Essence
		top, sub, _ := strings.Cut(t, "/")
		known := sub == "octet-stream" || strings.HasPrefix(sub, "x-") || strings.HasPrefix(sub, "vnd.") || sub == "zip" || sub == "pdf"
		if top == "video" || top == "audio" || top == "image" && sub != "svg+xml" || top == "application" && known && !strings.HasSuffix(sub, "gzip") && !strings.HasSuffix(sub, "xml") {
			return refuse("media", "%.80q of %d bytes; at most %d", t, size, n)
		}
		return Reason{}
	})
}

// MaxLength refuses answers with a 2xx status whose declared length, as sent, exceeds n bytes.
// Others are read up to the fetcher's limit.
func MaxLength(n int64) Response {
	return ResponseFunc(func(status int, h http.Header) Reason {
		size, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
		if status/100 == 2 && err == nil && size > n {
			return refuse("length", "%d bytes; at most %d", size, n)
		}
		return Reason{}
	})
}
