// These tests read bodies whose end is missing.

package fetch

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBodiesWithoutTheirEndAreGiven(t *testing.T) {
	page := strings.Repeat("<p>a page with a link</p> ", 300)
	packed := string(gz(page))
	for name, x := range map[string]struct {
		answer string
		class  Class
		broken string
		whole  bool // all of the page is there
	}{
		"gzip without its trailer":  {fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed)-8, packed[:len(packed)-8]), Other, "", true},
		"gzip that is cut":          {fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed)-20, packed[:len(packed)-20]), Decode, "unspecified", false},
		"gzip that is cut, by TCP":  {fmt.Sprintf("Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(packed), packed[:len(packed)-8]), Cut, "disconnect", true},
		"too large Content-Length":  {fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(page)+7, page), Cut, "disconnect", true},
		"no last chunk":             {fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(page), page), Cut, "disconnect", true},
		"something else as a chunk": {fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\nzz\r\n", len(page), page), Protocol, "disconnect", true},
		"no more, and no end":       {fmt.Sprintf("Content-Length: %d\r\n\r\n%s-", len(page)+7, page), Timeout, "time", false},
		"nothing at all":            {"Content-Length: 7\r\n\r\n", Cut, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := raw(t, func(c net.Conn) {
				_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + x.answer))
				if x.class == Timeout {
					_, _ = c.Read(make([]byte, 1))
				}
				_ = c.Close()
			})
			var o Options
			if x.class == Timeout {
				o.IdleTimeout = 100 * time.Millisecond
			}
			res, err := get(t, newFetcher(t, o), "http://"+addr+"/")
			require.NotNil(t, res, "%v", err)
			t.Cleanup(func() { _ = res.Close() })
			assert.Equal(t, x.class, ClassOf(err), "%v", err)
			assert.Equal(t, 200, res.Status)
			assert.Equal(t, x.broken, res.Broken)
			assert.Equal(t, x.broken != "", res.Truncated)
			got := body(t, res)
			assert.Equal(t, x.broken != "" || x.whole, got != "")
			assert.True(t, strings.HasPrefix(page, strings.TrimSuffix(got, "-")))
			if x.whole {
				assert.Len(t, got, len(page))
			}
		})
	}
}
