// This file feeds what is read back from rows and exports to damage.

package frontier

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/seed-7440039f/frontier/internal/metarow"
	"github.com/stretchr/testify/require"
)

// FuzzRows decodes any row: no panic, and what is understood is written and read
// again as it was.
func FuzzRows(f *testing.F) {
	for _, v := range [][]byte{
		{}, {0}, {1, 0, 0}, []byte("\x01a.example"), bytes.Repeat([]byte{0xff}, 20),
		(&deletion{seq: 5, block: 7, scope: Domain("a.example")}).row().Value,
		(&deletion{seq: 5, ofCrawl: true, crawl: 3}).row().Value,
		metarow.Meta{Epoch: 3, Seq: 300, Held: 5}.Encode(),
	} {
		f.Add("\x00\x00\x00\x00\x00\x00\x00\x05", v)
		f.Add("a.example", v)
	}
	f.Fuzz(func(t *testing.T, name string, v []byte) {
		_, _ = decodeHost(name, v)
		_, _ = decodeGroup(name, v)
		_, _, _ = decodeCrawl(name, v)
		_, _, _ = decodeRule(rowRule+name, v)
		_, _, _ = readNote(rowNote+name, v)
		if d, err := readDeletion(rowDeletion+name, v); err == nil {
			r := d.row()
			again, err := readDeletion(r.Key, r.Value)
			require.NoError(t, err)
			require.Equal(t, d.row(), again.row())
		}
		if m, err := metarow.Decode(v); err == nil {
			again, err := metarow.Decode(m.Encode())
			require.NoError(t, err)
			require.Equal(t, m, again)
		}
	})
}

// FuzzLine reads lines of an export: none is longer than what was given.
func FuzzLine(f *testing.F) {
	f.Add([]byte("{\"url\":\"http://a.example/\"}\n{}\n"))
	f.Add([]byte("\r\n\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := bufio.NewReader(bytes.NewReader(text))
		n := 0
		for {
			line, _, err := readLine(r, nil)
			if err != nil {
				return
			}
			n += len(line)
			require.LessOrEqual(t, n, len(text))
		}
	})
}
