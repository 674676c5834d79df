package row

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzRows decodes any row: no panic, and what is understood is written and read
// again as it was.
func FuzzRows(f *testing.F) {
	for _, v := range [][]byte{
		{}, {0}, {1, 0, 0}, []byte("\x01a.example"), bytes.Repeat([]byte{0xff}, 20),
		(&Deletion{Seq: 5, Block: 7, Scope: Scope{Name: "a.example", Domain: true, Named: true}}).Row().Value,
		(&Deletion{Seq: 5, OfCrawl: true, Crawl: 3}).Row().Value,
		(&Deletion{Seq: 5, OfCrawl: true, Crawl: 3, Scope: Scope{Name: "a.example", Named: true}}).Row().Value,
		Meta{Epoch: 3, Seq: 300, Held: 5}.Row().Value,
	} {
		f.Add("\x00\x00\x00\x00\x00\x00\x00\x05", v)
		f.Add("a.example", v)
	}
	f.Fuzz(func(t *testing.T, name string, v []byte) {
		again(t, func(v []byte) (Host, error) { return ParseHost(name, v) }, v, func(h Host) []byte { return h.Row(name).Value })
		again(t, func(v []byte) (Usage, error) { return ParseUsage(name, v) }, v, func(u Usage) []byte { return u.Row(name).Value })
		again(t, func(v []byte) (Group, error) { return ParseGroup(name, v) }, v, func(g Group) []byte { return g.Row(name).Value })
		again(t, func(v []byte) (Crawl, error) { return ParseCrawl(name, v) }, v, func(c Crawl) []byte { return c.Row().Value })
		again(t, func(v []byte) (Rule, error) { _, r, err := ParseRule(name+".", v); return r, err }, v, func(r Rule) []byte { return r.Row(name).Value })
		again(t, func(v []byte) (Outdated, error) { return ParseOutdated(OutdatedKey+name, v) }, v, func(o Outdated) []byte { return o.Row().Value })
		again(t, func(v []byte) (Deletion, error) { return ParseDeletion(DeletionKey+name, v) }, v, func(d Deletion) []byte { return d.Row().Value })
		again(t, func(v []byte) (Count, error) { _, _, c, err := ParseCount(CountKey+"0000"+name, v); return c, err }, v, func(c Count) []byte { return c.Row(name).Value })
		again(t, func(v []byte) (CountSum, error) { _, s, err := ParseCountSum(SumKey+"0000", v); return s, err }, v, func(s CountSum) []byte { return s.Row(0).Value })
		again(t, ParseMeta, v, func(m Meta) []byte { return m.Row().Value })
	})
}

// again requires that what is read of v, if it says anything, is written and read again as
// it was.
func again[T comparable](t *testing.T, read func([]byte) (T, error), v []byte, write func(T) []byte) {
	x, err := read(v)
	if err != nil || len(write(x)) == 0 {
		return
	}
	got, err := read(write(x))
	require.NoError(t, err)
	require.Equal(t, x, got)
}
