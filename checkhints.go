// This file verifies what is known of hints.

package frontier

// hints checks how much memory they are said to take, that their URLs are known, and
// that none waits for a walk that has ended.
func (k *checker) hints(f *Frontier) {
	h := &f.hints
	bytes := int64(0)
	for m, x := range h.at {
		bytes += hintBytes + int64(len(x.entry.Meta))
		if f.known.covered == 0 && !f.known.young(m) {
			k.bad("F8: there is a hint of a URL that is not known")
		}
		if last := h.walks + 1; x.walk > last || x.walk < last && !(h.walking && x.walk == h.walks) {
			k.bad("F8: a hint waits for walk %d after %d", x.walk, h.walks)
		}
	}
	if bytes != h.bytes {
		k.bad("F6: hints take %d bytes, counted %d", bytes, h.bytes)
	}
}
