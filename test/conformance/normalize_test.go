package conformance

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/crawler/urlnorm"
	"github.com/seed-7440039f/frontier/inspect"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// Whatever names a URL may spell it in any way: it is one URL. An Import has the forms already.
func TestOneURLHasOneForm(t *testing.T) {
	var seen []string
	o := frontier.Options{
		Delay: frontier.FixedDelay(0), Normalize: urlnorm.New().Normalize,
		Prioritizer: frontier.PrioritizerFunc(func(e frontier.Entry, _ frontier.History) int { seen = append(seen, e.URL); return 1 }),
	}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		const form, other = "http://a.example/~x", "http://b.example/"
		seen = nil
		n, err := w.F.Add(t.Context(), frontier.Entry{URL: "HTTP://A.example:80/b/../%7ex#top"}, frontier.Entry{URL: form}, frontier.Entry{URL: other})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		require.Equal(t, []string{form, form, other}, seen, "the Prioritizer sees the form")

		s, err := inspect.New(w.F).Status(t.Context(), frontier.Entry{URL: "http://a.example/./~x#y"})
		require.NoError(t, err)
		require.Equal(t, inspect.URLWaiting, s.State)
		require.Equal(t, form, s.Entry.URL)

		n, err = w.F.CrawlNow(t.Context(), frontier.Entry{URL: "http://B.example"})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		l := w.NextIs(0, other)
		require.Equal(t, frontier.Immediate, l.Priority)

		refused, err := w.F.DoneContext(t.Context(), l, frontier.Outcome{Add: []frontier.Entry{{URL: "http://a.example/%7Ex"}, {URL: "mailto:me"}, {URL: "http://C.example"}}})
		require.NoError(t, err)
		require.Len(t, refused, 1)
		require.Equal(t, "mailto:me", refused[0].URL)
		require.ErrorIs(t, refused[0], urlnorm.ErrScheme)

		_, err = inspect.New(w.F).Status(t.Context(), frontier.Entry{URL: "mailto:me"})
		require.ErrorIs(t, err, urlnorm.ErrScheme)
		n, err = w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/" + strings.Repeat("x", frontier.MaxURL)})
		require.Zero(t, n)
		require.Len(t, frontier.EntryErrors(err), 1)
		_, err = transfer.Import(t.Context(), w.F, strings.NewReader("http://a.example/%7ex\n"), transfer.ImportOptions{})
		require.NoError(t, err)
		require.ElementsMatch(t, []string{form, "http://c.example/", "http://a.example/%7ex"}, w.Rest())
	})
}

// The error of Normalize refuses its entry alone, and what it returns is checked like any URL.
func TestNormalizeRefuses(t *testing.T) {
	mine := errors.New("mine")
	forms := map[string]string{"good": "http://a.example/", "relative": "/x", "empty": "", "long": "http://a.example/" + strings.Repeat("x", frontier.MaxURL)}
	o := frontier.Options{Normalize: func(u string) (string, error) {
		if form, ok := forms[u]; ok {
			return form, nil
		}
		return "http://ignored.example/", mine
	}}
	harness.InBothWorlds(t, o, func(t *testing.T, w *harness.World) {
		n, err := w.F.Add(t.Context(), frontier.Entry{URL: "bad"}, frontier.Entry{URL: "relative"}, frontier.Entry{URL: "empty"}, frontier.Entry{URL: "long"}, frontier.Entry{URL: "good"})
		require.Equal(t, 1, n)
		bad := frontier.EntryErrors(err)
		require.Len(t, bad, 4)
		require.Equal(t, []any{0, "bad"}, []any{bad[0].Index, bad[0].URL})
		require.ErrorIs(t, bad[0], mine)
		require.Equal(t, "relative", bad[1].URL, "as given")
		var out bytes.Buffer
		err = transfer.Export(t.Context(), w.F, &out, transfer.ExportOptions{})
		require.NoError(t, err)
		require.Contains(t, out.String(), `"http://a.example/"`)
		require.Equal(t, []string{"http://a.example/"}, w.Rest())
	})
}
