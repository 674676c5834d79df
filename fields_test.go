package frontier

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A row of a newer program can be read if what is new in it may be skipped, and is
// of another version, not damaged, if it may not.
func TestFieldsOfNewerPrograms(t *testing.T) {
	tagged := func(tag uint64) []byte { return []byte{byte(tag), 2, 'x', 'y'} }
	number := func(tag uint64) []byte { return binary.AppendUvarint(binary.AppendUvarint(nil, tag<<1), 1<<63) }
	text := func(tag uint64) []byte {
		return append(binary.AppendUvarint(nil, tag<<1|1), tagged(tag)[1:]...)
	}
	host := appendText(appendNumber(nil, hostDue, 5), hostGroup, "g")
	limits := appendLimits(nil, &Limits{Served: 7})
	rule := ruleRow("org.", &storedRule{Rule: Rule{Concurrency: 2}}).Value
	group := groupRow("g", groupState{due: 5, GroupSettings: GroupSettings{Delay: FixedDelay(time.Second)}}).Value
	crawl := crawlRow(3, CrawlSettings{Weight: 2, Limits: Limits{Served: 7}}).Value
	for name, c := range map[string]struct {
		row   []byte
		field func(tag uint64) []byte
		read  func([]byte) (any, error)
	}{
		"host, a number": {host, number, func(v []byte) (any, error) { return decodeHost("a", v) }},
		"host, a text":   {host, text, func(v []byte) (any, error) { return decodeHost("a", v) }},
		"usage":          {appendUsage(nil, 0, usageState{since: 5, served: 1}), number, func(v []byte) (any, error) { return decodeUsage("u:r", v) }},
		"usage, a text":  {appendUsage(nil, 0, usageState{since: 5, served: 1}), text, func(v []byte) (any, error) { return decodeUsage("u:r", v) }},
		"limits":         {limits, number, func(v []byte) (any, error) { var l Limits; err := readLimits(v, &l); return l, err }},
		"rule":           {rule, tagged, func(v []byte) (any, error) { _, r, err := decodeRule("org.", v); return r, err }},
		"group":          {group, tagged, func(v []byte) (any, error) { return decodeGroup("g", v) }},
		"crawl":          {crawl, func(tag uint64) []byte { return []byte{byte(tag), 1} }, func(v []byte) (any, error) { _, s, err := decodeCrawl("\x00\x00\x00\x03", v); return s, err }},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := c.read(c.row)
			require.NoError(t, err)
			got, err := c.read(append(c.row[:len(c.row):len(c.row)], c.field(optional)...))
			require.NoError(t, err)
			require.Equal(t, want, got)
			got, err = c.read(append(c.row[:len(c.row):len(c.row)], c.field(optional+19)...))
			require.NoError(t, err)
			require.Equal(t, want, got)

			_, err = c.read(append(c.row[:len(c.row):len(c.row)], c.field(optional-1)...))
			require.ErrorIs(t, err, ErrVersion)
			var corrupt *CorruptError
			require.False(t, errors.As(err, &corrupt))
			require.False(t, errors.As(rowError("k", err), &corrupt))
		})
	}
	_, err := decodeHost("a", append(host[:len(host):len(host)], text(optional)[:3]...))
	require.NotErrorIs(t, err, ErrVersion)
	require.Error(t, err)
}
