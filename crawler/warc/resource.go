// This file makes records of what was fetched over other protocols than HTTP.

package warc

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// isHTTP reports whether an exchange was over HTTP.
func (e *Exchange) isHTTP() bool {
	scheme, _, _ := strings.Cut(strings.ToLower(e.URL), "://")
	return scheme == "http" || scheme == "https"
}

// others returns the records of an exchange over another protocol, such as a file over FTP: a
// resource, if there was an answer with a body (WARC 1.1, section 6.4), and metadata with the
// status, Header and Metadata.
func (e *Exchange) others(s sum) []*Record {
	about := Header{{"status", fmt.Sprint(e.Status)}}
	for _, name := range slices.Sorted(maps.Keys(e.Header)) {
		for _, v := range e.Header[name] {
			about.Add(name, v)
		}
	}
	meta := &Record{Type: Metadata, Date: e.Date, TargetURI: e.URL, Block: bytes.NewReader(fieldsBlock(append(about, e.Metadata...))),
		Header: Header{{"Content-Type", "application/warc-fields"}, {"WARC-IP-Address", e.IP}}}
	if e.Status/100 != 2 {
		return []*Record{meta}
	}
	kind := cmp.Or(e.Header.Get("Content-Type"), "application/octet-stream")
	main := &Record{Type: Resource, ID: NewID(), Date: e.Date, TargetURI: e.URL, Block: e.Payload, Header: Header{
		{"Content-Type", cleanLine(kind)}, {"WARC-IP-Address", e.IP}, {"WARC-Truncated", e.Truncated}, {"WARC-Payload-Digest", s.digest},
	}}
	if t := identify(e.Header, s.head); t != "" {
		main.Header.Add("WARC-Identified-Payload-Type", t)
	}
	meta.Header = append(meta.Header, Field{"WARC-Concurrent-To", "<" + main.ID + ">"}, Field{"WARC-Refers-To", "<" + main.ID + ">"})
	return []*Record{main, meta}
}

// fieldsBlock returns a block of the type application/warc-fields.
func fieldsBlock(all Header) []byte {
	var b bytes.Buffer
	for _, f := range all {
		fmt.Fprintf(&b, "%s: %s\r\n", f.Name, cleanLine(f.Value))
	}
	return b.Bytes()
}
