// This file defines Envelope, the encoding of Entry.Meta in a served frontier.

package serve

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/seed-7440039f/frontier"
)

// Priorities is the number of priorities of a served frontier. Discovered is the priority of a URL that
// names none.
const (
	Priorities = 16
	Discovered = 4
)

// Envelope is stored with each URL. Times have a precision of one second.
type Envelope struct {
	Created  time.Time           // when it was first added
	Refetch  uint64              // when the client wants it fetched again, in seconds since 1970; 0: not given
	Priority uint8               // 1 to Priorities; 0 means Discovered
	Meta     map[string][]string // what the client sent
}

// envelopeVersion is the first byte of an envelope.
const envelopeVersion = 1

// errEnvelope is the cause when Meta is not an envelope.
var errEnvelope = errors.New("serve: the URL's metadata are in no form that this version knows")

// Append appends the encoded envelope: its version, the two times, the priority, and Meta as the
// protocol buffer message {map<string, StringList> = 1}, StringList {repeated string = 1}.
func (e *Envelope) Append(b []byte) []byte {
	b = append(b, envelopeVersion)
	created := int64(0)
	if !e.Created.IsZero() {
		created = max(0, e.Created.Unix())
	}
	b = binary.AppendUvarint(b, uint64(created))
	b = binary.AppendUvarint(b, e.Refetch)
	b = append(b, e.Priority)
	if len(e.Meta) == 0 {
		return b
	}
	for _, key := range slices.Sorted(maps.Keys(e.Meta)) {
		list := 0
		for _, v := range e.Meta[key] {
			list += sizeOfField(len(v))
		}
		b = appendTag(b, 1, sizeOfField(len(key))+sizeOfField(list))
		b = append(appendTag(b, 1, len(key)), key...)
		b = appendTag(b, 2, list)
		for _, v := range e.Meta[key] {
			b = append(appendTag(b, 1, len(v)), v...)
		}
	}
	return b
}

// appendTag begins a length-delimited field.
func appendTag(b []byte, field, n int) []byte {
	return binary.AppendUvarint(append(b, byte(field<<3|2)), uint64(n))
}

// sizeOfField returns the encoded size of a field of n bytes.
func sizeOfField(n int) int {
	size := 2 + n
	for x := uint64(n); x >= 0x80; x >>= 7 {
		size++
	}
	return size
}

// OpenEnvelope decodes the Meta of an entry. Without Meta it returns the zero Envelope.
func OpenEnvelope(meta []byte) (e Envelope, err error) {
	if len(meta) == 0 {
		return e, nil
	}
	if meta[0] != envelopeVersion {
		return e, fmt.Errorf("%w: version %d", errEnvelope, meta[0])
	}
	b := meta[1:]
	created, n := binary.Uvarint(b)
	if n <= 0 {
		return e, errEnvelope
	}
	b = b[n:]
	e.Refetch, n = binary.Uvarint(b)
	if n <= 0 || len(b) == n {
		return e, errEnvelope
	}
	if created > 0 {
		e.Created = time.Unix(int64(created), 0).UTC()
	}
	e.Priority, b = b[n], b[n+1:]
	for len(b) > 0 {
		pair, rest, ok := field(b, 1)
		if !ok {
			return e, errEnvelope
		}
		b = rest
		key, rest, ok := field(pair, 1)
		list, end, ok2 := field(rest, 2)
		if !ok || !ok2 || len(end) > 0 {
			return e, errEnvelope
		}
		values := []string{}
		for len(list) > 0 {
			v, rest, ok := field(list, 1)
			if !ok {
				return e, errEnvelope
			}
			values, list = append(values, string(v)), rest
		}
		if e.Meta == nil {
			e.Meta = map[string][]string{}
		}
		e.Meta[string(key)] = values
	}
	return e, nil
}

// field splits off one length-delimited field.
func field(b []byte, number byte) (value, rest []byte, ok bool) {
	if len(b) < 2 || b[0] != number<<3|2 {
		return nil, nil, false
	}
	size, n := binary.Uvarint(b[1:])
	if n <= 0 || size > uint64(len(b)-1-n) {
		return nil, nil, false
	}
	end := 1 + n + int(size)
	return b[1+n : end], b[end:], true
}

// priorityOf is the Prioritizer of a served frontier.
func priorityOf(e frontier.Entry, _ frontier.History) int {
	if len(e.Meta) < 4 || e.Meta[0] != envelopeVersion {
		return Discovered
	}
	_, n := binary.Uvarint(e.Meta[1:])
	if n <= 0 {
		return Discovered
	}
	_, m := binary.Uvarint(e.Meta[1+n:])
	if m <= 0 || 1+n+m >= len(e.Meta) {
		return Discovered
	}
	if p := int(e.Meta[1+n+m]); p >= 1 && p <= Priorities {
		return p
	}
	return Discovered
}

// plainEnvelope caches the envelope of URLs without metadata for one second.
type plainEnvelope struct {
	second int64
	meta   []byte
}

// seal encodes an envelope created now. The result is shared: Add copies it.
func (s *Service) seal(priority uint8, meta map[string][]string, now time.Time) []byte {
	if priority != 0 || len(meta) > 0 {
		e := Envelope{Created: now, Priority: priority, Meta: meta}
		return e.Append(nil)
	}
	p := s.plain.Load()
	if p == nil || p.second != now.Unix() {
		e := Envelope{Created: now}
		p = &plainEnvelope{now.Unix(), e.Append(nil)}
		s.plain.Store(p)
	}
	return p.meta
}
