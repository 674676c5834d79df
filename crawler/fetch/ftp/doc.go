// Package ftp gets one file or one folder's listing over FTP (RFC 959, 2428, 3659), within one
// contact, for a crawler whose frontier paces the contacts.
//
//	f, err := ftp.New(ftp.Options{})
//	c, err := crawler.New(frontier, crawler.Options{Protocols: map[string]crawler.Fetcher{"ftp": f}})
//
// # Contact
//
// A fetch opens a control connection, logs in as anonymous, and opens one data connection in
// passive mode: EPSV, or PASV if the server does not support EPSV. When it returns, both are
// closed. The data connection goes to the address of the control connection, whatever PASV returns,
// and to no port below 1024: a server cannot direct the crawler to other services. User and
// password in a URL are not used. FTP over TLS is not supported.
//
// # Mapping to HTTP
//
// A path that ends in a slash is a folder: its listing (MLSD, or LIST in the formats of Unix, DOS
// and others) becomes an HTML page with a link for each entry. Other paths are files; if the server
// reports that one is a folder, the answer is a redirect to the path with a slash. The path is
// relative to the folder after login; %2F at its start is the server's root (RFC 1738). A ;type= at
// its end is obeyed for d, and otherwise ignored: files are transferred unchanged. A question mark
// and what follows it are part of the name.
//
// Answers look like those of HTTP, so that the same code can read them. The Result's Header has
// Content-Type for well-known extensions, Content-Length (SIZE), Last-Modified (MDTM) and, as
// Ftp-Reply, the server's text. If-Modified-Since is answered with 304 without a transfer.
//
//	reply of the server              Result
//	421, 120, 530 too many           503
//	425 (no data connection)         an error of the class Connect
//	426 (transfer ended early)       an error of the class Cut
//	other 4yz: 450, 451, 452         500
//	530, 532                         401
//	550, 553                         404
//	501, 504                         400
//	other 5yz                        403
//
// # Limits
//
// The time limits come from fetch.Options: DialTimeout for each of the two connections,
// HeaderTimeout for each reply, IdleTimeout and MinRate for data, Timeout for all. All replies of a
// contact together may have MaxHeader bytes; files and listings are cut off at MaxBody. Forbidden
// addresses are not contacted.
//
// robots.txt is an ordinary file (RFC 9309, section 2.3): ftp://a.example/robots.txt.
//
// # Tested against
//
// The tests use a server in this package. A crawl was also compared by hand with wget -r on
// pure-ftpd 1.0.50: it fetched the same files, except those that robots.txt forbids.
package ftp
