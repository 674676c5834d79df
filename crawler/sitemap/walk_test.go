// This file tests the walk from index to files, and where a site's sitemaps may be.

package sitemap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWalkIsBounded(t *testing.T) {
	index := func(names ...string) string {
		return "<sitemapindex><sitemap><loc>" + strings.Join(names, "</loc></sitemap><sitemap><loc>") + "</loc></sitemap></sitemapindex>"
	}
	page := urlset("<url><loc>https://a.example/page</loc></url>")
	lost := errors.New("lost")
	site := map[string]string{"/loop": index("/loop", "/loop2", "/page"), "/loop2": index("/loop", "/none"), "/page": page}
	for i := range 10 {
		site[fmt.Sprintf("/deep%d", i)] = index(fmt.Sprintf("/deep%d", i+1), "/page")
	}
	var fetched []string
	fetch := func(_ context.Context, url string) (File, error) {
		fetched = append(fetched, strings.TrimPrefix(url, "https://a.example"))
		body, ok := site[fetched[len(fetched)-1]]
		if !ok {
			return File{}, lost
		}
		return File{Body: io.NopCloser(strings.NewReader(body))}, nil
	}
	run := func(ctx context.Context, o WalkOptions, url string) (urls []string, errs []error) {
		fetched = nil
		for e, err := range Walk(ctx, fetch, o, url) {
			if err != nil {
				errs = append(errs, err)
			} else {
				urls = append(urls, e.URL)
			}
		}
		return urls, errs
	}

	urls, errs := run(t.Context(), WalkOptions{}, "https://a.example/loop")
	assert.Equal(t, []string{"/loop", "/loop2", "/none", "/page"}, fetched)
	assert.Len(t, urls, 1)
	require.Len(t, errs, 1)
	assert.ErrorIs(t, errs[0], lost)

	_, errs = run(t.Context(), WalkOptions{MaxDepth: 2}, "https://a.example/deep0")
	assert.Equal(t, []string{"/deep0", "/deep1", "/deep2", "/page"}, fetched)
	require.Len(t, errs, 1)
	assert.ErrorIs(t, errs[0], ErrNesting)

	_, errs = run(t.Context(), WalkOptions{MaxFiles: 2}, "https://a.example/deep0")
	assert.Len(t, fetched, 2)
	assert.ErrorIs(t, errs[len(errs)-1], ErrTooManyFiles)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, errs = run(ctx, WalkOptions{}, "https://a.example/loop")
	assert.Equal(t, []error{context.Canceled}, errs)
}

func TestPlaces(t *testing.T) {
	assert.Contains(t, Places("http://A.example:8080/x/y?z"), "http://a.example:8080/sitemap.xml")
	assert.Nil(t, Places("mailto:x"))
}
