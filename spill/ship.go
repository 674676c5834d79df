// This file encodes batches for a log that is kept elsewhere.

package spill

import (
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/seed-7440039f/frontier/spill/internal/journal"
	"github.com/seed-7440039f/frontier/storage"
)

// AppendBatch appends b, encoded and compressed, for a log from which another store commits it: all but
// ID and Local, which are each store's own, and Drop. A store finds out by itself which of its blocks
// hold nothing any more, and the numbers of another's blocks may be those of its own.
func AppendBatch(dst []byte, b *storage.Batch) []byte {
	shipped := *b
	shipped.Drop = nil
	return append(dst, s2.Encode(nil, journal.AppendBatch(nil, &shipped))...)
}

// ReadBatch decodes the output of AppendBatch into b, whose memory it reuses.
func ReadBatch(b *storage.Batch, data []byte) error {
	raw, err := s2.Decode(nil, data)
	if err == nil {
		err = journal.ReadBatch(b, raw)
	}
	if err != nil {
		return fmt.Errorf("spill: batch of a log: %w", err)
	}
	b.ID, b.Local = 0, false
	return nil
}
