// This file writes cursors, which name a place in the listing of URLs, and reads them.

package view

import (
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"

	"github.com/seed-7440039f/frontier/internal/hostkey"
)

// Cursor is the place behind a URL of a host, as text that is fit for a query string.
func Cursor(host string, seq uint64) string {
	b := append(binary.AppendUvarint(nil, seq), host...)
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

// ParseCursor is the inverse of Cursor; ok is false for other texts.
func ParseCursor(s string) (host string, seq uint64, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	end := max(0, len(b)-4)
	seq, n := binary.Uvarint(b[:end])
	if err != nil || n <= 0 || binary.BigEndian.Uint32(b[end:]) != crc32.ChecksumIEEE(b[:end]) || hostkey.Check(string(b[n:end])) != nil {
		return "", 0, false
	}
	return string(b[n:end]), seq, true
}
