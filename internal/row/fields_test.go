package row

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier/internal/quota"
	"github.com/seed-7440039f/frontier/storage"
	"github.com/stretchr/testify/require"
)

// A row of a newer program can be read if what is new in it may be skipped, and is
// of another version, not damaged, if it may not.
func TestFieldsOfNewerPrograms(t *testing.T) {
	number := func(tag uint64) []byte { return binary.AppendUvarint(binary.AppendUvarint(nil, tag<<1), 1<<63) }
	text := func(tag uint64) []byte {
		return append(binary.AppendUvarint(nil, tag<<1|1), 2, 'x', 'y')
	}
	host := (&Host{Due: 5, Group: "g"}).Row("a").Value
	usage := (&Usage{Since: 5, Served: 1}).Row("u:r").Value
	rule := (&Rule{Concurrency: 2}).Row("org.").Value
	group := (&Group{Due: 5, Delay: Delay{Kind: Fixed, Max: time.Second}}).Row("g").Value
	crawl := (&Crawl{ID: 3, CrawlSettings: CrawlSettings{Weight: 2, Limits: quota.Limits{Served: 7}}}).Row().Value
	deletion := (&Deletion{Seq: 5, OfCrawl: true, Crawl: 3}).Row()
	outdated := (&Outdated{Seq: 5, Block: 3}).Row()
	for name, c := range map[string]struct {
		row   []byte
		field func(tag uint64) []byte
		read  func([]byte) (any, error)
	}{
		"host, a number": {host, number, func(v []byte) (any, error) { return ParseHost("a", v) }},
		"host, a text":   {host, text, func(v []byte) (any, error) { return ParseHost("a", v) }},
		"usage":          {usage, number, func(v []byte) (any, error) { return ParseUsage("u:r", v) }},
		"usage, a text":  {usage, text, func(v []byte) (any, error) { return ParseUsage("u:r", v) }},
		"rule":           {rule, number, func(v []byte) (any, error) { _, r, err := ParseRule("org.", v); return r, err }},
		"group":          {group, text, func(v []byte) (any, error) { return ParseGroup("g", v) }},
		"crawl":          {crawl, number, func(v []byte) (any, error) { return ParseCrawl("\x00\x00\x00\x03", v) }},
		"deletion":       {deletion.Value, text, func(v []byte) (any, error) { return ParseDeletion(deletion.Key, v) }},
		"outdated":       {outdated.Value, number, func(v []byte) (any, error) { return ParseOutdated(outdated.Key, v) }},
		"meta":           {Meta{Epoch: 3, Seq: 7}.Row().Value, number, func(v []byte) (any, error) { return ParseMeta(v) }},
	} {
		t.Run(name, func(t *testing.T) {
			want, err := c.read(c.row)
			require.NoError(t, err)
			got, err := c.read(append(c.row[:len(c.row):len(c.row)], c.field(optional+1)...))
			require.NoError(t, err)
			require.Equal(t, want, got)
			got, err = c.read(append(c.row[:len(c.row):len(c.row)], c.field(optional+19)...))
			require.NoError(t, err)
			require.Equal(t, want, got)

			_, err = c.read(append(c.row[:len(c.row):len(c.row)], c.field(optional-1)...))
			require.ErrorIs(t, err, storage.ErrVersion)
			var corrupt *storage.CorruptError
			require.False(t, errors.As(err, &corrupt))
		})
	}
	_, err := ParseHost("a", append(host[:len(host):len(host)], text(optional)[:3]...))
	require.NotErrorIs(t, err, storage.ErrVersion)
	require.Error(t, err)
	_, err = ParseHost("a", append(host[:len(host):len(host)], number(optional)...))
	require.NoError(t, err, "the first tag that may be skipped")
}

// What no program writes is damage.
func TestMalformedRows(t *testing.T) {
	row := func(build func(f *fields)) []byte {
		var f fields
		build(&f)
		return f.row
	}
	one := func(tag int, x uint64) []byte {
		return row(func(f *fields) { number(f, tag, &x, 0) })
	}
	words := func(tag int, s string) []byte {
		return row(func(f *fields) { text(f, tag, &s, 0) })
	}
	rule := func(v []byte) error { _, _, err := ParseRule("org.", v); return err }
	deletion := func(v []byte) error { _, err := ParseDeletion((&Deletion{Seq: 5}).Key(), v); return err }
	pause := one(6, 1)
	for name, err := range map[string]error{
		"empty":             rule(nil),
		"no number":         rule([]byte{12}),
		"huge number":       rule(append([]byte{12}, bytes.Repeat([]byte{0xff}, 10)...)),
		"twice":             rule(append(pause[:len(pause):len(pause)], pause...)),
		"tags descend":      rule(append(pause[:len(pause):len(pause)], one(5, 2)...)),
		"no such switch":    rule(one(6, 3)),
		"concurrency":       rule(one(5, MaxConcurrency+1)),
		"no such delay":     rule(one(1, 3)),
		"numbers, no delay": rule(one(4, 5)),
		"endless delay":     rule(append(one(1, 1), one(4, uint64(MaxDelay)+1)...)),
		"fixed factor":      rule(append(one(1, 1), one(2, 5)...)),
		"infinite factor":   rule(append(one(1, 2), one(2, math.Float64bits(math.Inf(1)))...)),
		"min above max":     rule(append(one(1, 2), one(3, 5)...)),
		"priority":          rule(one(8, MaxPriorities+1)),
		"priorities":        rule(words(9, "\x01\xff")),
		"short period":      rule(one(16+6, 5)),
		"ended, no limits":  rule(one(48, 2)),
		"text is cut":       rule(words(9, "\x01\x02")[:2]),
		"deletion of none":  deletion(one(2, 5)),
		"nameless host":     deletion(one(1, ofHost)),
		"named all":         deletion(append(one(1, ofAll), words(4, "a")...)),
		"crawl of a host":   deletion(append(append(one(1, ofHost), one(3, 5)...), words(4, "a")...)),
	} {
		var corrupt *storage.CorruptError
		require.ErrorAs(t, err, &corrupt, name)
	}
	for key, name := range map[string]string{"org": "no end", strings.Repeat("a", 256) + ".": "long name", "!": "host without name"} {
		_, _, err := ParseRule(key, pause)
		require.Error(t, err, name)
	}
	_, err := ParseMeta([]byte{Version - 1, 1, 2, 3})
	require.ErrorIs(t, err, storage.ErrVersion)
}
