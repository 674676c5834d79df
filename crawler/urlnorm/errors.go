package urlnorm

import (
	"errors"
	"strings"
	"unicode"
)

var (
	// ErrScheme is returned for URLs whose scheme is neither http, https or ftp nor an accepted
	// one: mailto, javascript, data and others. A crawler skips them silently.
	ErrScheme = errors.New("scheme cannot be crawled")

	// ErrTooLong is returned for URLs and references of more than [MaxLength]
	// bytes, before or after normalizing.
	ErrTooLong = errors.New("URL too long")

	// ErrSyntax is returned, wrapped together with the parser's reason, for URLs that the URL
	// Standard rejects: without a host, with a bad port, or relative without a base. URLs with more
	// than 64 at signs are rejected, too.
	ErrSyntax = errors.New("invalid URL")
)

// syntaxError is an ErrSyntax with the parser's reason. Unlike the parser, it does not repeat the
// URL, which may contain a password or control characters for terminals.
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
