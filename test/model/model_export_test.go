// This file exports the model's frontier, and imports that elsewhere.

package model

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/seed-7440039f/frontier/transfer"
)

// Export requires that an export has exactly the URLs of the model, and that it
// is the same again when it has been imported.
func (m *model) Export(t *rapid.T) {
	export := func(f *frontier.Frontier) string {
		var b bytes.Buffer
		require.NoError(t, transfer.Export(context.Background(), f, &b, transfer.ExportOptions{}))
		return b.String()
	}
	text := export(m.f)
	var want, got []string
	for _, l := range m.waiting {
		for _, it := range l {
			want = append(want, it.url)
		}
	}
	for _, it := range m.scheduled {
		want = append(want, it.url)
	}
	for url := range m.kept {
		want = append(want, url)
	}
	for _, h := range m.hosts {
		if h.lease != nil && h.lease.item != nil && !h.lease.dead {
			want = append(want, h.lease.item.url)
		}
	}
	for _, line := range harness.LinesOf(text, "url") {
		var x struct{ URL string }
		require.NoError(t, json.Unmarshal([]byte(line), &x))
		got = append(got, x.URL)
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
	known := 0
	for _, line := range harness.LinesOf(text, "marks") {
		known += (len(line) - len(`{"marks":""}`)) / 16
	}
	require.Equal(t, len(m.known)+m.ghosts, known)

	for name, h := range m.hosts {
		probing := h.lease != nil && m.opts.Quarantine.Probes > 0 && h.probes > m.opts.Quarantine.Probes
		if probing || len(m.waiting[name]) > 0 && m.lost(h) {
			return // its URLs would be given up elsewhere
		}
	}
	o := m.opts
	o.Spill = nil
	f, err := frontier.Open(context.Background(), o)
	require.NoError(t, err)
	_, err = transfer.Import(context.Background(), f, strings.NewReader(text), transfer.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, harness.Timeless(text), harness.Timeless(export(f)))
	require.NoError(t, f.Check())
	require.NoError(t, f.Close())
}
