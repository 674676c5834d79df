// This file chooses how to read a page by its declared type.

package neardup

import "mime"

// Body returns the Page of a body with any Content-Type: HTML and plain text by their words,
// anything else by its bytes.
func (h *Hasher) Body(body []byte, contentType string) Page {
	switch t, _, _ := mime.ParseMediaType(contentType); t {
	case "text/html", "application/xhtml+xml":
		return h.HTML(body, contentType)
	case "text/plain":
		return h.Text(body)
	}
	return h.Other(body)
}
