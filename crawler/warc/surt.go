// This file writes URLs in a form that sorts by domain, and the lines of an index.

package warc

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	escape     = regexp.MustCompile(`%[0-9A-Fa-f]{2}`)
	slashes    = regexp.MustCompile(`/+`)
	wwwLabel   = regexp.MustCompile(`^www\d*\.`)
	sessionArg = regexp.MustCompile(`^(?:jsessionid=[0-9a-z]{32}|phpsessid=[0-9a-z]{32}|sid=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}|cfid=[^&]+|cftoken=[^&]+)$`)
)

// SURT returns a URL's key in an index: its host from the top-level domain down, then path and
// query ("com,example)/path?query"). As in the Internet Archive's tools, it omits scheme, userinfo,
// fragment, www., session ids in the query and a trailing slash, lower-cases letters, decodes
// escapes, and sorts parameters.
func SURT(raw string) string {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Host == "" {
		return strings.ToLower(raw)
	}
	host := wwwLabel.ReplaceAllString(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), "")
	if !strings.Contains(host, ":") { // no IPv6 address
		labels := strings.Split(host, ".")
		slices.Reverse(labels)
		host = strings.Join(labels, ",")
	}
	port := u.Port()
	if port != "" && !(u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443") {
		host += ":" + port
	}
	path := strings.ToLower(reescape(u.EscapedPath()))
	path = "/" + strings.Trim(slashes.ReplaceAllString(path, "/"), "/")
	args := slices.DeleteFunc(strings.Split(strings.ToLower(reescape(u.RawQuery)), "&"), sessionArg.MatchString)
	slices.Sort(args)
	if query := strings.Join(args, "&"); query != "" {
		path += "?" + query
	}
	return host + ")" + path
}

// reescape decodes percent-encoding, including nested, and encodes what must be encoded.
func reescape(s string) string {
	for range 10 {
		plain := escape.ReplaceAllStringFunc(s, func(e string) string {
			b, _ := hex.DecodeString(e[1:])
			return string(b)
		})
		if plain == s {
			break
		}
		s = plain
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || c == '#' || c == '%' {
			fmt.Fprintf(&b, "%%%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// IndexLine is the line of an index about one record.
type IndexLine struct {
	Key  string    `json:"-"` // the URL's SURT
	Date time.Time `json:"-"`

	URL      string `json:"url"`
	MIME     string `json:"mime"`
	Status   string `json:"status,omitempty"`
	Digest   string `json:"digest,omitempty"` // of the payload
	Length   string `json:"length"`           // bytes of the file that the record occupies
	Offset   string `json:"offset"`
	Filename string `json:"filename"`
}

// String returns the line in the form of a CDXJ file: key, date, and a JSON object.
func (l IndexLine) String() string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(l) // strings always can be encoded
	return fmt.Sprintf("%s %s %s", l.Key, l.Date.UTC().Format("20060102150405"), strings.TrimSpace(b.String()))
}

// ParseIndexLine reads a line of a CDXJ file.
func ParseIndexLine(s string) (l IndexLine, err error) {
	parts := strings.SplitN(s, " ", 3)
	if len(parts) < 3 {
		return l, fmt.Errorf("warc: index line %q: %w", s, ErrSyntax)
	}
	if err := json.Unmarshal([]byte(parts[2]), &l); err != nil {
		return l, fmt.Errorf("warc: index line %q: %w", s, err)
	}
	l.Key = parts[0]
	l.Date, err = time.Parse("20060102150405", parts[1])
	if err != nil {
		return l, fmt.Errorf("warc: index line %q: %w", s, err)
	}
	return l, nil
}
