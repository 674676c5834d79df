// This test reads headers and Metas that make no sense.

package crawler

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/fetch"
	"github.com/seed-7440039f/frontier/crawler/link"
	"github.com/seed-7440039f/frontier/internal/media"
)

func FuzzHeaders(f *testing.F) {
	f.Add("text/html; charset=x", `W/"etag"`, "mybot: noindex, nofollow", "gzip, identity", []byte{metaVersion, 1, 1, 2, 3, 4, 5, 6, 7, 8, 2, '"', '"', 'n'})
	f.Add("text/html; a=b; a=c", `"`, "unavailable_after: 25 Jun 2010 15:00:00 PST", ",", []byte{metaVersion, 0xff})
	f.Add(";;", "W/", ":", "br", []byte("mine"))
	f.Fuzz(func(t *testing.T, contentType, tag, robots, encoding string, raw []byte) {
		media.Sniff(http.Header{"Content-Type": {contentType, robots}}, raw)
		fetch.Coded(http.Header{"Content-Encoding": {encoding}}, raw)
		link.RobotsTag([]string{robots}, "mybot")
		m, own := metaOf(frontier.Entry{Meta: raw})
		if own {
			m.etag = validETag(tag)
			again, _ := metaOf(frontier.Entry{Meta: m.bytes()})
			assert.Equal(t, m, again)
		}
		if e := validETag(tag); e != "" {
			assert.NoError(t, (&http.Request{Header: http.Header{"If-None-Match": {e}}}).Header.Write(discard{}))
			assert.NotContains(t, e, "\n")
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
