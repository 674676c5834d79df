// Package importance estimates which URLs are important while they are crawled, so that the best pages
// come first.
//
//	est, err := importance.New(importance.Options{Score: importance.Links})
//	f, err := frontier.Open(ctx, frontier.Options{Prioritizer: est})
//	c, err := crawler.New(f, crawler.Options{Importance: est})
//
// A URL gets a priority when it is added. But a page shows its importance later, by the links that are
// found to it while it waits. An [Estimator] is a frontier.Riser: it counts these links, and the frontier
// moves what has become important.
//
// # Links
//
// [Links] counts the links to a URL, its backlinks (Cho, Garcia-Molina and Page, "Efficient crawling through
// URL ordering", 1998). The levels begin at 1, 3, 7, 15 links and so on, and nearly half of
// [Options].Levels lie below the first, for hosts that sink. They are coarse on purpose: hosts take turns within a
// level, while an exact order drains one well-linked host first.
//
// # Trust
//
// [Trust] lets importance flow, as OPIC does (Abiteboul, Preda and Cobena, "Adaptive on-line page importance
// computation", 2003), but from the seeds alone (Gyöngyi, Garcia-Molina and Pedersen, "Combating web spam with
// TrustRank", 2004). Each seed has cash: its Weight, or 1. A visit divides 0.85 of the page's cash among
// its links. The score is the cash times the square of the number of links; levels are parts of what waits,
// 15 % in the lowest. A move has its price: a URL rises to level 3 or more, and then by two levels at least.
// The hosts of a farm link to each other as often as they like, but cash does not grow by going round.
//
// A link that a page does not endorse (nofollow, ugc, sponsored) gives nothing: [Options].Relevance. A URL
// that was added without a page, as from a sitemap, has a tenth of a seed's cash.
//
// # Hosts
//
// A host sinks if its pages are of no use: copies, or gone ([Options].Useful). It loses two levels for each
// halving of the useful part, and none above 84 %. Nine pages more are taken as useful, so that a small host
// does not sink by one bad page. Of the pages that were never there every second counts as useful: anyone can
// link to a page that a host does not have, so broken links alone sink it by two levels at most.
//
// # Memory
//
// [Options].Memory bounds all of it. Half of it is a table of buckets of four cells. For Links a cell has
// 2 bytes: 12 bits of a keyed hash of the URL, and 4 bits for the count, which is exact up to 4 and moves at
// random between the powers of the root of two beyond (Morris, "Counting large numbers of events in small
// registers", 1978): nine of ten counts are within a factor of two. For Trust it has 4 bytes: 14 bits of
// hash, cash in eighths of an octave, the count, and the level that the frontier knows of. The first link to
// a URL needs no cell, as it is in the URL's record; a visit buries the cell, so that it gives way first.
// When a bucket is full, a new URL takes the place of the poorest with the probability of its part of the
// worth of both. So a million URLs that are linked once do not wash away one that is linked often. Two URLs
// share a cell with a probability of about 4/4096 (Links) or 4/16384; which ones, only the key determines.
//
// The other half knows hosts, 8 bytes for each. Hosts that have sunk are not forgotten.
//
// # Restarts
//
// [Estimator.Save] and [Estimator.Load] keep what is known. Without a snapshot, or after a crash, the order
// is worse for a while, and no URL is lost: levels, weights and the standing of hosts are the frontier's.
//
// # Crawls without an end
//
// [Estimator.Weight] says what a fresh copy of a page is worth, for package recrawl. With [Options].Keep the
// links to visited pages go on counting. A page's own links count at its first visit only: then they have their
// effect whether it is fetched once a year or every hour, and a page that has other links at each fetch gains nothing by
// it. A page of a host without useful pages has little weight, even if it
// changes at every fetch.
package importance
