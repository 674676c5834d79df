// Package crawllog records the fate of each URL of a crawl: when it was fetched, with which status
// and how many bytes, or why it failed, was given up or was refused.
//
//	l, err := crawllog.Open(crawllog.Options{Path: "state/ends/ends.jsonl"})
//	c, err := crawler.New(f, crawler.Options{OnEnd: func(r crawllog.Record) { err := l.Add(r); ... }})
//	r, ok, err := l.Find("http://a.example/")
//
// The log is a file of JSON lines, one Record each. Older files are beside it, with a number after
// the same name: ends.jsonl.000001, ends.jsonl.000002 and so on, where a higher number is newer.
// Their total size is limited: the oldest file is removed first.
//
// # After kill -9
//
// Add passes a line to the system before it returns. A crawler calls Add before it ends the lease,
// so each end is in the log at least once: a page whose record was written but whose lease was not
// ended is fetched and recorded again, and the new record is marked Again. The next Open removes a
// cut line, and counts it in its Opened record. After a loss of power the last lines may be
// missing.
package crawllog
