// Package processing connects a crawler to the packages that are useful without one: an
// archive (warc), the content-seen test (near), sitemaps, and statistics.
//
// Each module is a Handler, which sees each answer that will not be tried again, before
// the frontier is told of it; [Chain] makes one of several:
//
//	sm := processing.NewSitemaps(f, processing.SitemapOptions{UserAgent: agent})
//	o.Robots = sm
//	o.OnPage = processing.Chain(processing.ContentSeen(x, processing.SeenOptions{SkipLinks: true}), sm.Handle)
//	processing.AddArchive(&o, w, processing.ArchiveOptions{}) // before these, and robots.txt files too
//
// A module of your own is a function like these; [ForTypes] makes one see only some
// media types. It is called by all workers at once, and may change Page.Add and
// Page.Outcome, which the frontier is told of after the last one.
//
// If a Handler returns an error the page counts as failed and is fetched again. So what
// Archive and ContentSeen keep of a page is kept before the frontier knows that it was
// read: after kill -9 a page may be in the archive twice, but none is missing.
//
// The crawler itself does not import this package, and so not what it imports.
package processing
