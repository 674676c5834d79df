// Package warc writes and reads archives of web pages in the WARC format, version 1.1
// (ISO 28500:2017).
//
//	w, err := warc.Open("crawl/warc", warc.Options{Software: "mybot/1.0"})
//	defer w.Close()
//	err = w.WriteExchange(warc.Exchange{URL: url, Status: resp.StatusCode, Header: resp.Header, Body: body})
//
//	r := warc.NewReader(file)
//	for rec, err := range r.Records() { ... rec.Type, rec.TargetURI, rec.Block ... }
//
// # What is written
//
// For each exchange a response, its request, and metadata if there are any, each with
// digests (SHA-1 in base 32) and a random UUID, and each a gzip member of its own, so
// that a record can be read from its offset. Answers with status 304 to pages whose
// last capture the Writer remembers, and payloads that it remembers, become revisit
// records, which name the capture by ID, URL and date. Requests are written as they were
// sent, if the Exchange has that; HTTP/2 as HTTP/1.1, with WARC-Protocol. Bodies are written as a crawler has
// them, without transfer and content encodings, and headers are corrected to match:
// see Exchange.
//
// # Files
//
// A Writer fills files in a folder, named by prefix, time and number, the next when one
// is large enough. While it is written a file's name ends in .open. When it is finished
// it has an index beside it, in CDXJ: a line for each response, revisit and resource,
// sorted by SURT and time, with the offset of the record. Indexes of many files are
// merged by "LC_ALL=C sort -m".
//
// # Crashes
//
// What Write and WriteExchange returned for survives kill -9, and with Options.Sync a
// loss of power. [Open] finishes what a crash left: it keeps all whole records, and
// cuts a torn one off, so no file that is finished ever has one. A crawler that reports
// a page as done after writing it loses no page; one that it had not reported is
// written again.
//
// # Reading
//
// A Reader reads plain and compressed files of any size as streams, WARC 1.0 and 1.1,
// also those with several records in a member, folded header lines, lines that end in
// LF, or no empty lines at the end. Each error has the position of its record; all
// whole records in front of it come first.
//
// # Checked with
//
// A test reads what GNU wget writes. Files of a Writer, compressed and plain, with
// responses, requests, revisits and metadata, were checked with warcio 1.8 and
// cdxj-indexer 1.5: "warcio check" found every digest right, and the other tool made
// the same indexes from them, line by line.
package warc
