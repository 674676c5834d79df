// Package warc writes and reads archives of web pages in the WARC format, version 1.1 (ISO
// 28500:2017).
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
// For each exchange the Writer writes a response, its request, and metadata if there are any. Each
// record has digests (SHA-1 in base 32) and a random UUID, and is a separate gzip member, so that
// it can be read from its offset. Two kinds of answers become revisit records, which refer to the
// earlier capture by ID, URL and date: answers with status 304 to pages whose last capture the
// Writer remembers, and payloads that it remembers. Requests are written as they were sent, if the
// Exchange contains that; HTTP/2 is written as HTTP/1.1, with WARC-Protocol. Bodies are written as
// a crawler has them, without transfer and content encodings, and headers are corrected to match:
// see Exchange.
//
// # Files
//
// A Writer fills files in a folder, named by prefix, time and number, and starts the next one when
// a file is large enough. While a file is written, its name ends in .open. A finished file has an
// index beside it, in CDXJ: a line for each response, revisit and resource, sorted by SURT and
// time, with the offset of the record. Merge the indexes of several files with "LC_ALL=C sort -m".
//
// # Crashes
//
// Records survive kill -9 once Write or WriteExchange has returned, and with Options.Sync a loss of
// power. [Open] finishes the file of a crashed Writer: it keeps all complete records and cuts off a
// torn one, so a finished file never contains one. A crawler that reports a page as done after
// writing it loses no page; a page that it had not reported is written again.
//
// # Reading
//
// A Reader reads plain and compressed files of any size as streams, in WARC 1.0 and 1.1. It also
// accepts several records in one gzip member, folded header lines, lines that end in LF, and
// missing empty lines at the end. Each error has the position of its record; all complete records
// before it are returned first.
//
// # Compatibility
//
// A test reads files written by GNU wget. Files of a Writer, compressed and plain, with responses,
// requests, revisits and metadata, were checked with warcio 1.8 and cdxj-indexer 1.5: "warcio
// check" confirmed every digest, and cdxj-indexer produced the same indexes, line by line.
package warc
