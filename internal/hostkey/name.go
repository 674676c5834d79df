package hostkey

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// Check returns an error if no host can have the key.
func Check(key string) error {
	if len(key) < 1 || len(key) > 255 {
		return fmt.Errorf("host key has %d bytes; want 1 to 255", len(key))
	}
	return nil
}

// Spelled returns the key of the host that a name refers to, if Of makes the keys. A name that
// is not valid UTF-8 is used as a key unchanged.
func Spelled(name string) (string, error) {
	if err := Check(name); err != nil || isPlain(name) || !utf8.ValidString(name) {
		return name, err
	}
	if strings.ContainsAny(name, "/?#@") {
		return "", fmt.Errorf("%q is not a host key; want a host without scheme, user and path", name)
	}
	host := name
	if strings.Count(name, ":") > 1 && name[0] != '[' { // an IPv6 address
		host = "[" + name + "]"
	}
	key, err := Of("http://" + host + "/")
	if err != nil {
		return "", fmt.Errorf("%q is not a host key: %w", name, err)
	}
	if strings.LastIndexByte(host, ':') > strings.LastIndexByte(host, ']') {
		return "", fmt.Errorf("%q is not a host key; want %q: all ports are one host", name, key)
	}
	return key, nil
}

// InURL returns a host's name as normalized URLs have it; unchanged if no host has it.
func InURL(name string) string {
	switch key, err := Spelled(name); {
	case err != nil:
		return name
	case strings.Contains(key, ":"): // an IPv6 address
		return "[" + key + "]"
	default:
		return key
	}
}

// isPlain reports quickly whether a name is already a key.
func isPlain(name string) bool {
	for i := range len(name) {
		if b := name[i]; !(b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '.') {
			return false
		}
	}
	return name != "" && name[len(name)-1] != '.' && !oddNumber(name)
}

// AppendReversed appends a name with its labels reversed: c.b.a for a.b.c. Addresses have no labels
// and stay unchanged.
func AppendReversed(dst, name []byte) []byte {
	if len(name) > 0 && MayBeAddress(name) {
		if _, err := netip.ParseAddr(unsafe.String(&name[0], len(name))); err == nil {
			return append(dst, name...)
		}
	}
	for {
		dot := bytes.LastIndexByte(name, '.')
		dst = append(dst, name[dot+1:]...)
		if dot < 0 {
			return dst
		}
		dst = append(dst, '.')
		name = name[:dot]
	}
}

// Domain returns the registrable domain of a key, as far as it can be seen without a list of public
// suffixes: the last two labels, or three if the last but one is short and below a country, as in
// co.uk. An address is a domain by itself.
func Domain(name []byte) []byte {
	if MayBeAddress(name) {
		return name
	}
	tld := bytes.LastIndexByte(name, '.')
	if tld < 0 {
		return name
	}
	dot := bytes.LastIndexByte(name[:tld], '.')
	if tld-dot <= len(".com") && len(name)-tld == len(".uk") && dot >= 0 {
		dot = bytes.LastIndexByte(name[:dot], '.')
	}
	return name[dot+1:]
}

// MayBeAddress reports whether a key may be an IP address. Without parsing, it returns false for
// most names, and never for an address.
func MayBeAddress(name []byte) bool {
	last := name[len(name)-1]
	return last >= '0' && last <= '9' || bytes.IndexByte(name, ':') >= 0
}

// Reversed is AppendReversed for strings.
func Reversed(name string) string {
	if !strings.Contains(name, ".") {
		return name
	}
	var buf [256]byte
	return string(AppendReversed(buf[:0], Bytes(name)))
}

// Bytes returns a key's own bytes, for look-ups: they must not be changed.
func Bytes(key string) []byte { return unsafe.Slice(unsafe.StringData(key), len(key)) }

// String is the inverse of Bytes: it lasts as long as the bytes stay as they are.
func String(key []byte) string { return unsafe.String(unsafe.SliceData(key), len(key)) }
