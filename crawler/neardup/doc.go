// Package neardup recognizes pages that were seen before, exactly or nearly, and hosts
// that are mirrors of others.
//
//	x, err := neardup.Open("crawl/near", neardup.Options{})
//	defer x.Close()
//	...
//	m, err := x.Add(url, x.Hasher().HTML(body, contentType))
//	if m.Kind.Duplicate() { ... m.URL has that content already: its links are known ... }
//
// This is the content-seen test of Mercator and of the IR book (sections 19.6 and
// 20.2.1). A [Hasher] alone tells how much a page changed since it was last fetched:
// [Page].Change.
//
// # What is compared
//
// Of an HTML page its words count, without what its site puts around every page:
// navigation, headers, footers, menus and lists of links, told by their elements, their
// role, class and id, and by how much of a block is links ([Text]). Letter case,
// punctuation, markup and blanks do not matter, and numbers do not either
// (Options.KeepNumbers), so that a date, a counter or the next page of a calendar is no
// new content. Of other files the bytes count.
//
// # How pages are compared
//
// As by Broder and others ("Syntactic Clustering of the Web", 1997). The resemblance
// of two pages is the share of their shingles, all runs of four words, that both have.
// A [Sketch] of 84 numbers estimates it with a standard error of 0.03 or less at 0.9;
// groups of these numbers are super-shingles, by which the index finds candidates
// without looking at all pages. Two pages are near if the estimate is at least
// Options.Threshold. Of pairs whose resemblance is 0.1 below a threshold of 0.85, two
// in 100 are taken all the same, and of those 0.15 below one in 1,000.
//
// Pages shorter than [MinWords] are compared exactly: two of them differ in nothing or
// in much.
//
// # What is found
//
// A page of which each word is replaced with probability p keeps about (1-p)^4 of its
// shingles. What thresholds find was measured on 129 texts from Go's standard library,
// 500 to 1,500 words each, in pages with a template of 120 words, edited as stated;
// the true resemblance in the mean, and pairs found, in per cent
// (go test -run Edits -v ./crawler/neardup -frontier.long):
//
//	                                  true  at 0.70  0.80  0.85  0.90  0.95
//	nothing but dates and counters    1.00      100   100   100   100   100
//	markup: elements, case, blanks    1.00      100   100   100   100   100
//	another site's template           1.00      100   100   100   100   100
//	one block moved                   0.99      100   100   100   100    97
//	five blocks moved                 0.95      100   100   100    95    60
//	a block of 30 words added         0.97      100   100   100   100    84
//	0.5 % of words replaced           0.96      100   100   100    99    74
//	1 % of words replaced             0.92      100   100    95    78    32
//	2 % of words replaced             0.86      100    92    57    19     2
//	3 % of words replaced             0.80       98    44    18     2     0
//	5 % of words replaced             0.69       44     4     0     0     0
//	10 % of words replaced            0.50        0     0     0     0     0
//	30 % of words replaced            0.15        0     0     0     0     0
//	half is another text              0.34        0     0     0     0     0
//	same template, another text       0.00        0     0     0     0     0
//
// If the first eight are to be found, and the last four are not, the default of 0.85
// has a recall of 0.993 and a precision of 1.
//
// # Mirrors
//
// If two hosts have the same or nearly the same page at the same path, that is
// remembered. When that is so of most pages of one, one is a mirror of the other
// ([Index].Mirrors, Options.OnMirror), also if both are crawled at once, and if many of a
// host's pages are near each other, too: whichever page is found first, that at the same
// path on the other host is looked at. Which of the two is called the mirror their names
// decide: see [Mirror].
//
// # Durability and memory
//
// An Index is a folder. What Add returned for survives kill -9, and with Options.Sync a
// loss of power. A page takes 0.6 kB of disk and 0.1 ms of CPU time, if every other one
// is new (go test -run Size -v ./crawler/neardup -frontier.long). Memory is bounded by
// Options.Memory, however many pages there are
// (go test -run Heap -v ./crawler/neardup -frontier.long).
package neardup
