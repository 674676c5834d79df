// Package changefeed reads lists of changed URLs, as sites publish them with IndexNow
// (https://www.indexnow.org/documentation), and adds them to a frontier as hints
// (frontier.Entry.Hint). Known, scheduled URLs may be fetched earlier, depending on the trust of
// the frontier's Hinter; unknown URLs are admitted.
//
//	r, err := changefeed.Add(ctx, f, file, changefeed.Options{Wanted: c.Wanted})
//
// A list is either text in UTF-8, with one URL per line, where blank lines and lines that begin
// with # are ignored; or one or more bodies of IndexNow requests, one after the other:
//
//	{"host": "www.example.org", "key": "...", "urlList": ["https://www.example.org/a", ...]}
//
// The URLs of such a body must belong to its host. Keys are not checked: the source of the list is
// trusted, but its claims are not. A Hinter weighs them by how many claims of a host proved true,
// so that a list of all pages does not cause a burst of fetches.
//
// Nothing is lost: a malformed line is reported with its number and the other lines are added, what
// was added is durable, and adding a list twice with the same time (Options.At) has the same effect
// as adding it once.
package changefeed
