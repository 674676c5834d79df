// This file tells which site a URL belongs to.

package crawler

import "strings"

// siteOf is the scheme, host and port of an http or https URL, in lower case and
// without the scheme's default port: what a robots.txt holds for. It is empty
// for other URLs.
func siteOf(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	scheme = strings.ToLower(scheme)
	port := ""
	switch {
	case ok && scheme == "http":
		port = ":80"
	case ok && scheme == "https":
		port = ":443"
	default:
		return ""
	}
	if i := strings.IndexAny(rest, "/?#\\"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	rest = strings.TrimSuffix(strings.ToLower(rest), port)
	if rest == "" {
		return ""
	}
	return scheme + "://" + rest
}

// hostOf is the host name in a site, without its port.
func hostOf(site string) string {
	_, host, _ := strings.Cut(site, "://")
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return host
}

// isRobots reports whether url is the robots.txt of its site.
func isRobots(url string) bool { return url == siteOf(url)+"/robots.txt" }
