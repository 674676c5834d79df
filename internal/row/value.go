package row

import (
	"fmt"

	"github.com/seed-7440039f/frontier/storage"
)

// Limits of the program's own values.
const (
	MaxValueKey = 255
	MaxValue    = 64 << 10
)

// CheckValue returns an error if a key or value is too long.
func CheckValue(key string, v []byte) error {
	if len(key) < 1 || len(key) > MaxValueKey {
		return fmt.Errorf("key has %d bytes; want 1 to %d", len(key), MaxValueKey)
	}
	if len(v) > MaxValue {
		return fmt.Errorf("value has %d bytes; want at most %d", len(v), MaxValue)
	}
	return nil
}

// valueFollows is the first byte of a row with a value of the program's: an empty value is a row, too.
const valueFollows = 1

// Value returns the row of a value of the program's; v nil deletes it.
func Value(key string, v []byte) storage.Row {
	r := storage.Row{Key: ValueKey + key}
	if v != nil {
		r.Value = append([]byte{valueFollows}, v...)
	}
	return r
}

// ParseValue returns the value in a row, which it shares.
func ParseValue(key string, p []byte) ([]byte, error) {
	if len(p) == 0 || p[0] != valueFollows || CheckValue(key[len(ValueKey):], p[1:]) != nil {
		return nil, Malformed(key)
	}
	return p[1:], nil
}
