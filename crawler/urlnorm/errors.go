package urlnorm

import (
	"errors"
	"strings"
	"unicode"
)

var (
	// ErrScheme is returned for URLs that are not http, https or ftp, nor of a scheme
	// that was accepted: mailto, javascript, data and the like. A crawler skips them without a report.
	ErrScheme = errors.New("urlnorm: scheme cannot be crawled")

	// ErrTooLong is returned for URLs and references of more than [MaxLength]
	// bytes, before or after normalizing.
	ErrTooLong = errors.New("urlnorm: URL too long")

	// ErrSyntax is returned, wrapped together with the parser's reason, for what
	// the URL Standard calls a failure: no host, a bad port, a relative reference
	// without a base. URLs with more than 64 at signs count as invalid too.
	ErrSyntax = errors.New("urlnorm: invalid URL")
)

// syntaxError is an ErrSyntax with the parser's reason. It does not repeat the URL,
// as the parser does: that may hold a password, and characters for terminals.
type syntaxError struct{ err error }

func (e syntaxError) Error() string {
	reason, _, _ := strings.Cut(e.err.Error(), ". Url: '")
	return ErrSyntax.Error() + ": " + strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, strings.TrimPrefix(reason, "Error: "))
}

func (e syntaxError) Unwrap() []error { return []error{ErrSyntax, e.err} }
