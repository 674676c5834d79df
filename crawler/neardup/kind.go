// This file chooses how to read a page by its declared type.

package neardup

import "github.com/seed-7440039f/frontier/internal/media"

// Body returns the Page of a body with any Content-Type: HTML and plain text by their words,
// anything else by its bytes.
func (h *Hasher) Body(body []byte, contentType string) Page {
	switch t := media.Parse(contentType); {
	case t.HTML():
		return h.HTML(body, contentType)
	case t.Essence == "text/plain":
		return h.Text(body)
	}
	return h.Other(body)
}
