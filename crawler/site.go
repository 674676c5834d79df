// This file determines the site of a URL.

package crawler

import "strings"

// defaultPorts are the ports that a URL need not contain.
var defaultPorts = map[string]string{"http": ":80", "https": ":443", "ftp": ":21", "gopher": ":70"}

// siteOf returns the scheme, host and port of a URL, in lower case and without the scheme's default
// port: the unit of robots.txt. It is empty for URLs without a host.
func siteOf(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme == "" || strings.ContainsAny(scheme, ":/?#") {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#\\"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	rest = strings.TrimSuffix(strings.ToLower(rest), defaultPorts[scheme])
	if rest == "" {
		return ""
	}
	return scheme + "://" + rest
}

// hostOf returns a site's host name without its port.
func hostOf(site string) string {
	_, host, _ := strings.Cut(site, "://")
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	return host
}

// isRobots reports whether url is the robots.txt of its site.
func isRobots(url string) bool { return url == siteOf(url)+"/robots.txt" }
