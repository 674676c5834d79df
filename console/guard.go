// This file keeps strangers out.

package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// limited bounds what a request may be.
func limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > 16<<10 {
			writeJSON(w, http.StatusRequestURITooLong, map[string]string{"error": "console: the request is too long"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// guarded answers only under names that are this machine's, and to its own pages.
func (c *Console) guarded(h http.Handler) http.Handler {
	own := http.NewCrossOriginProtection().Handler(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !c.knows(r.Host) {
			writeJSON(w, http.StatusMisdirectedRequest, map[string]string{"error": "console: it does not answer under this name"})
			return
		}
		own.ServeHTTP(w, r)
	})
}

// knows tells whether a Host header is one of ours: a name that a stranger had point
// here is not.
func (c *Console) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || slices.Contains(c.o.Names, host) || slices.Contains(c.o.Names, "*") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// errToken is the answer to who has not the token.
var errToken = errors.New("console: wrong token: the command that runs the crawl says which")

// withToken lets programs through who have the token.
func (c *Console) withToken(h http.HandlerFunc) http.Handler {
	return c.tokened(h, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, statusOf(errToken), map[string]string{"error": errToken.Error()})
	})
}

// tokened lets through who has the token: as a Bearer, or in a form's field.
func (c *Console) tokened(h, refuse http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
			token = r.PostFormValue("token")
		}
		if !same(token, c.o.Token) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r)
			return
		}
		h(w, r)
	})
}

// same compares in a time that says nothing, not even of lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
