// This file decides which requests are allowed.

package console

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// limited bounds the size of requests, and how many responses are in memory: a client may leave its own
// unread for a while.
func (c *Console) limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.URL.RawQuery) > 16<<10 {
			writeJSON(w, http.StatusRequestURITooLong, map[string]string{"error": "console: the request is too long"})
			return
		}
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close") // there may have been a Content-Length, too, which net/http hides (RFC 9112, 6.1)
		}
		if r.URL.Path != metricsPath { // it has bounds of its own
			select {
			case c.answers <- struct{}{}:
				defer func() { <-c.answers }()
			default:
				writeJSON(w, statusOf(errBusy), map[string]string{"error": errBusy.Error()})
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

// guarded allows only this machine's names, and requests from its own pages.
func (c *Console) guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		if !Ours(r.Host, c.o.Names) {
			writeJSON(w, http.StatusMisdirectedRequest, map[string]string{"error": "console: it does not answer under this name"})
			return
		}
		if strays(r) {
			writeJSON(w, http.StatusForbidden, map[string]string{"error": "console: another site's page asked for this"})
			return
		}
		h.ServeHTTP(w, r)
	})
}

// Ours reports whether a Host header names this machine: localhost, a loopback address, or one of names,
// and "*" stands for all. A stranger's web site may have its own name resolve to this address (DNS
// rebinding).
func Ours(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	if host == "localhost" || slices.ContainsFunc(names, func(name string) bool { return name == "*" || strings.EqualFold(name, host) }) {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// CheckNames returns an error for the first of Options.Names under which no page can be asked for.
func CheckNames(names []string) error {
	for _, name := range names {
		if name != "*" && (name == "" || strings.ContainsAny(name, "/ ") || !Ours(name, []string{name})) {
			return fmt.Errorf("the name %q; want a host name without scheme, port and path, or *", name)
		}
	}
	return nil
}

// Foreign reports whether a page of another site, or of another port, made a browser send a request, of
// any method: even a read may be expensive. Programs send none of the header fields it checks.
func Foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none":
		return false
	case "":
		origin := r.Header.Get("Origin") // from old browsers
		at, err := url.Parse(origin)
		return origin != "" && (err != nil || at.Host != r.Host)
	}
	return true
}

// strays reports whether a request is foreign, except a link to the first page, or a link from the same
// site to any page.
func strays(r *http.Request) bool {
	read := r.Method == http.MethodGet || r.Method == http.MethodHead
	follows := read && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	page := r.URL.Path == "/" || r.Header.Get("Sec-Fetch-Site") == "same-site" && r.URL.Path != metricsPath && !strings.HasPrefix(r.URL.Path, "/api/")
	return Foreign(r) && !(follows && page)
}

// readers lets through clients that may read: those connected to a loopback address, unless
// Options.Private is set, or with the token, as Bearer or in the cookie that enter sets. It asks others
// for the token.
func (c *Console) readers(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead: // the handler itself asks for the token
		case assets[r.URL.Path] != "" || r.URL.Path == "/enter" || c.mayRead(r):
		case strings.HasPrefix(r.URL.Path, "/api/") || r.URL.Path == metricsPath:
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeJSON(w, statusOf(errToken), map[string]string{"error": errToken.Error()})
			return
		default:
			c.askToken(w, r, false)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// mayRead reports whether the client may read.
func (c *Console) mayRead(r *http.Request) bool {
	return !c.o.Private && local(r) || c.opens(bearer(r)) || c.entered(r)
}

// local reports whether a request arrived on a loopback address.
func local(r *http.Request) bool {
	a, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if a == nil {
		return false
	}
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func bearer(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}

// cookie is what a browser sends after it has signed in. It reveals nothing about the token. It allows
// what the page can do, and of the API only reads: browsers do not separate ports, so they send it to
// other programs on this machine, too. It has no path attribute, so it applies to the path under which
// the browser sees the page.
func (c *Console) cookie() *http.Cookie { return c.cookieOf("page") }

// cookieOf returns the cookie of a named operator; it contains the name.
func (c *Console) cookieOf(name string) *http.Cookie {
	sum, mark := sha256.Sum256([]byte("frontier page "+c.o.Token)), sha256.Sum256([]byte("frontier page "+c.o.Token+"\x00"+name))
	return &http.Cookie{
		Name: "frontier-" + hex.EncodeToString(sum[:4]), Value: hex.EncodeToString(mark[:]) + "." + hex.EncodeToString([]byte(name)),
		HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

func (c *Console) entered(r *http.Request) bool { return c.who(r) != "" }

// who returns the name of the person or program that signed in; empty: no one has.
func (c *Console) who(r *http.Request) string {
	x, err := r.Cookie(c.cookie().Name)
	if err != nil {
		return ""
	}
	_, text, _ := strings.Cut(x.Value, ".")
	name, err := hex.DecodeString(text)
	if err != nil || !same(x.Value, c.cookieOf(string(name)).Value) {
		return ""
	}
	return string(name)
}

// leave removes the cookie.
func (c *Console) leave(w http.ResponseWriter, r *http.Request) {
	x := c.cookie()
	x.Value, x.MaxAge = "", -1
	http.SetCookie(w, x)
	lead(w, r, "", http.StatusSeeOther)
}

// errToken refuses a client without the token.
var errToken = errors.New("console: wrong token: the command that runs the crawl says which")

// withToken lets through programs with the token as Bearer.
func (c *Console) withToken(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.opens(bearer(r)) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeJSON(w, statusOf(errToken), map[string]string{"error": errToken.Error()})
			return
		}
		h(w, r.WithContext(As(r.Context(), c.nameOf(bearer(r)))))
	})
}

// opens reports whether a token allows changes.
func (c *Console) opens(token string) bool {
	if c.o.Operator == nil {
		return same(token, c.o.Token)
	}
	_, ok := c.o.Operator(token)
	return ok
}

// nameOf returns the token's owner.
func (c *Console) nameOf(token string) string {
	if c.o.Operator == nil {
		return "page"
	}
	name, _ := c.o.Operator(token)
	return name
}

// whoKey is the context key of the client's name.
type whoKey struct{}

// As returns a context for requests to Local in a user's name, for the log of changes.
func As(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, whoKey{}, who)
}

// tokened lets through clients with the token in a form field, or signed in. It asks others for the
// token, and then does what they wanted.
func (c *Console) tokened(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		token := ""
		if strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
			token = r.PostFormValue("token")
		}
		switch {
		case token != "" && c.opens(token):
			http.SetCookie(w, c.cookieOf(c.nameOf(token)))
			r = r.WithContext(As(r.Context(), c.nameOf(token)))
		case token != "" || !c.entered(r):
			c.askToken(w, r, token != "")
			return
		default:
			r = r.WithContext(As(r.Context(), c.who(r)))
		}
		h(w, r)
	})
}

// askToken responds with a page that asks for the token; wrong: the one given was wrong.
func (c *Console) askToken(w http.ResponseWriter, r *http.Request, wrong bool) {
	d := enterData{Action: "enter", Back: placeOf(r), Wrong: wrong, Reads: c.mayRead(r)}
	if r.Method == http.MethodPost {
		d.Action, d.Back = placeOf(r), backOf(r)
		for name, values := range r.PostForm {
			if name != "token" && name != "back" {
				d.Fields = append(d.Fields, [2]string{name, values[0]})
			}
		}
		slices.SortFunc(d.Fields, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	c.show(w, r, "enter.html", "Sign in", d, errToken)
}

// enterData is the data of the sign-in page.
type enterData struct {
	Action, Back string
	Fields       [][2]string // of the form that was sent
	Wrong        bool
	Reads        bool // the page may be read without the token
}

// same compares in constant time, also for different lengths.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
