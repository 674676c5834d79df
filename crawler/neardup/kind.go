// This file chooses how a page is read by what it says that it is.

package neardup

import "mime"

// Body returns what is to be remembered of a body of any Content-Type: of HTML and
// plain text the words, of anything else the bytes.
func (h *Hasher) Body(body []byte, contentType string) Page {
	switch t, _, _ := mime.ParseMediaType(contentType); t {
	case "text/html", "application/xhtml+xml":
		return h.HTML(body, contentType)
	case "text/plain":
		return h.Text(body)
	}
	return h.Other(body)
}
