// Package crawllog records what became of each URL of a crawl: when it was fetched, with
// which status and how many bytes, or why it failed, was given up or was refused.
//
//	l, err := crawllog.Open(crawllog.Options{Path: "state/ends/ends.jsonl"})
//	c, err := crawler.New(f, crawler.Options{OnEnd: func(r crawllog.Record) { err := l.Add(r); ... }})
//	r, ok, err := l.Find("http://a.example/")
//
// The log is a file of JSON lines, one Record each, and older files beside it, named like
// it with a number behind: ends.jsonl.000001, ends.jsonl.000002 and so on, where a higher
// number is newer. Together they are bounded in bytes: the oldest file goes first.
//
// # After kill -9
//
// A line is handed to the system before Add returns. A crawler calls Add before it ends the
// lease, so each end is in the log at least once: a page whose record was written but whose
// lease was not ended is fetched and recorded again, and that record is marked Again. A
// line that was cut is removed by the next Open, counted and told in its Opened record.
// After a loss of power the last lines may be missing.
package crawllog
