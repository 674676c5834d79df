package urlnorm

import "errors"

var (
	// ErrScheme is returned for URLs that are not http, https or ftp: mailto,
	// javascript, data and the like. A crawler skips them without a report.
	ErrScheme = errors.New("urlnorm: scheme cannot be crawled")

	// ErrTooLong is returned for URLs and references of more than [MaxLength]
	// bytes, before or after normalizing.
	ErrTooLong = errors.New("urlnorm: URL too long")

	// ErrSyntax is returned, wrapped together with the parser's reason, for what
	// the URL Standard calls a failure: no host, a bad port, a relative reference
	// without a base. URLs with more than 64 at signs count as invalid too.
	ErrSyntax = errors.New("urlnorm: invalid URL")
)
