// Package processing connects a crawler to packages that can be used without one: an archive
// (warc), the content-seen test (neardup), sitemaps, and statistics.
//
// Each module is a Handler. It sees each answer that will not be retried, before the outcome is
// reported to the frontier. [Chain] combines several:
//
//	sm := processing.NewSitemaps(f, processing.SitemapOptions{UserAgent: agent})
//	o.Robots = sm
//	o.OnPage = processing.Chain(processing.ContentSeen(x, processing.SeenOptions{SkipLinks: true}), sm.Handle)
//	processing.AddArchive(&o, w, processing.ArchiveOptions{}) // before these, and robots.txt files too
//
// A custom module is a function with the same signature; [ForTypes] limits it to some media types.
// All workers call it concurrently. It may change Page.Add and Page.Outcome, which are reported
// after the last module.
//
// If a Handler returns an error, the page counts as failed and is fetched again. So Archive and
// ContentSeen store a page before the frontier knows that it was read: after kill -9 a page may be
// in the archive twice, but none is missing.
//
// The crawler does not import this package, nor what this package imports.
package processing
