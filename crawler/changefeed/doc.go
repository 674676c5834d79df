// Package changefeed takes lists of URLs that are said to have changed, as sites tell of
// them by IndexNow (https://www.indexnow.org/documentation), and gives them to a
// frontier as hints (frontier.Entry.Hint): what is known and scheduled may be fetched
// earlier, as far as its Hinter believes it; what is not known is admitted.
//
//	r, err := changefeed.Add(ctx, f, file, changefeed.Options{Wanted: c.Wanted})
//
// A list is either text in UTF-8, one URL a line, where blank lines and those that begin
// with # are passed over; or the body of an IndexNow request, or any number of them, one
// after the other:
//
//	{"host": "www.example.org", "key": "...", "urlList": ["https://www.example.org/a", ...]}
//
// The URLs of such a body must be of its host. Keys are not checked: who hands a list in
// is trusted, but the claims in it are not. A Hinter weighs them by how many of a host's
// came true, so that a list of all there is makes no storm of fetches.
//
// Nothing is lost: a line that is no URL is reported with its number and the others are
// taken, what was taken is durable, and a list that is taken twice with the same time
// (Options.At) is one that was taken once.
package changefeed
