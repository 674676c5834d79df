// Package neardup recognizes pages that were seen before, exactly or nearly, and hosts that are
// mirrors of others.
//
//	x, err := neardup.Open("crawl/near", neardup.Options{})
//	defer x.Close()
//	...
//	m, err := x.Add(url, x.Hasher().HTML(body, contentType))
//	if m.Kind.Duplicate() { ... m.URL has that content already: its links are known ... }
//
// This is the content-seen test of Mercator and of the IR book (sections 19.6 and 20.2.1). A
// [Hasher] without an index computes how much a page changed since it was last fetched:
// [Page].Change.
//
// # What is compared
//
// For an HTML page, its words are compared, without what its site puts around every page:
// navigation, headers, footers, menus and lists of links. These are recognized by their elements,
// role, class and id, and by how much of a block is links ([Text]). Letter case, punctuation,
// markup and white space are ignored, and so are the values of numbers (Options.KeepNumbers), so
// that a date, a counter or the next page of a calendar is not new content. For other files, the
// bytes are compared.
//
// # How pages are compared
//
// The method comes from Broder and others ("Syntactic Clustering of the Web", 1997). The
// resemblance of two pages is the share of their shingles, all runs of four words, that both have.
// A [Sketch] of 84 numbers estimates it with a standard error of 0.03 or less at 0.9. Groups of
// these numbers are super-shingles, by which the index finds candidates without comparing all
// pages. Two pages are near if the estimate is at least Options.Threshold. With a threshold of
// 0.85, 2 % of the pairs whose resemblance is 0.1 lower count as near, and 0.1 % of those 0.15
// lower.
//
// Pages shorter than [MinWords] are compared exactly: two of them differ in nothing or in much. Those
// without any words, as pages that scripts fill, are compared by their bytes.
//
// # What is found
//
// A page in which each word is replaced with probability p keeps about (1-p)^4 of its shingles.
// What thresholds find was measured on 129 texts from Go's standard library, 500 to 1,500 words
// each, in pages with a template of 120 words, edited as stated. The table shows the mean true
// resemblance, and the pairs found, in per cent (go test -run Edits -v ./crawler/neardup
// -frontier.long):
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
// If the first eight should be found, and the last four should not, the default of 0.85 has a
// recall of 0.993 and a precision of 1.
//
// # Mirrors
//
// The index records when two hosts have the same or nearly the same page at the same path. If that
// is true of most pages of a host, it is a mirror of the other host, or vice versa
// ([Index].Mirrors, Options.OnMirror). This works even if both are crawled at once, or if many of a
// host's pages are near each other: whichever page is found first, the page at the same path on the
// other host is examined. Which of the two is called the mirror depends on their names: see
// [Mirror].
//
// # Durability and memory
//
// An Index is a folder. Pages survive kill -9 once Add has returned, and with Options.Sync a loss
// of power. A page takes 0.6 kB of disk and 0.1 ms of CPU time, if every other page is new (go test
// -run Size -v ./crawler/neardup -frontier.long). Options.Memory limits the memory, whatever the
// number of pages (go test -run Heap -v ./crawler/neardup -frontier.long).
package neardup
