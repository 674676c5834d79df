// This file names the encoding of a page.

package link

import "github.com/seed-7440039f/frontier/internal/media"

// Charset returns the canonical name of a page's encoding (HTML Standard, "Determining the
// character encoding"), given at least its first 1,024 bytes, or all if there are fewer. The first
// of these that is present decides: a byte order mark, the charset of the Content-Type header, a
// meta element, an XML declaration, bytes that look like UTF-8. The default is windows-1252. In XML,
// as contentType says, only the XML declaration counts, and the default is UTF-8. [Extract] also reads
// a meta element that comes later in the head of a page.
func Charset(head []byte, contentType string) string {
	return media.EncodingOf(head, media.Parse(contentType)).Name
}

// textEncoding is the encoding of a page whose links are written.
type textEncoding media.Encoding
