// This file resolves references of any scheme, to show or store links that a crawler does not
// follow.

package urlnorm

import "strings"

// Reference returns the URL, of any scheme, that ref means relative to base, as serialized by the
// URL Standard; an absolute ref needs no base. No rules are applied, and fragments stay. Use it for
// links that a crawler does not follow, such as mailto: a [Normalizer] rejects those with
// ErrScheme. It fails with [ErrTooLong] or [ErrSyntax].
func Reference(base, ref string) (string, error) {
	for _, s := range []string{base, ref} {
		if err := bounded(s); err != nil {
			return "", err
		}
	}
	w, err := parser.ParseRef(base, ref)
	if err != nil {
		return "", syntaxError{err}
	}
	s := w.Href(false)
	// The last space of an opaque path is encoded, which the parser does not do yet. Other paths cannot
	// end in one.
	if i := strings.IndexAny(s, "?#"); i > 0 && s[i-1] == ' ' {
		s = s[:i-1] + "%20" + s[i:]
	}
	if len(s) > MaxLength {
		return "", ErrTooLong
	}
	return s, nil
}
