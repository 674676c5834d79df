// This file tests the IDs of leases: what they find, and what they do not.

package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/spill"
	"github.com/seed-7440039f/frontier/test/harness"
	"github.com/stretchr/testify/require"
)

// A lease is found by its ID as it is now, until it ends.
func TestALeaseIsFoundByItsID(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{LeaseTime: time.Minute}, func(t *testing.T, w *harness.World) {
		_, err := w.F.Add(t.Context(), frontier.Entry{URL: "http://a.example/", Depth: 2, Weight: 0.5, Meta: []byte("m"), Crawl: 3})
		require.NoError(t, err)
		l := w.Next()
		require.Len(t, l.ID(), 16)
		found, err := w.F.LeaseByID(l.ID())
		require.NoError(t, err)
		require.Equal(t, l, found)

		w.Clock.Advance(30 * time.Second)
		require.NoError(t, w.F.Extend(&l, time.Minute))
		found, err = w.F.LeaseByID(l.ID())
		require.NoError(t, err)
		require.Equal(t, l, found)

		contact, err := w.F.HandBack(l)
		require.NoError(t, err)
		_, err = w.F.LeaseByID(l.ID())
		require.ErrorIs(t, err, frontier.ErrNotLeased)
		found, err = w.F.LeaseByID(contact.ID())
		require.NoError(t, err)
		require.True(t, found.ContactOnly())
		require.NoError(t, w.F.Done(found, frontier.Outcome{Result: frontier.Requeue, Uncontacted: true}))
		_, err = w.F.LeaseByID(contact.ID())
		require.ErrorIs(t, err, frontier.ErrNotLeased)

		l = w.Next()
		w.Clock.Advance(time.Minute)
		_, err = w.F.LeaseByID(l.ID())
		require.ErrorIs(t, err, frontier.ErrNotLeased)
	})
}

// The duration of a visit whose lease was found counts from the hand-out.
func TestALeaseThatWasFoundKnowsWhenItBegan(t *testing.T) {
	harness.InBothWorlds(t, frontier.Options{Delay: frontier.FactorDelay(1, 0, time.Hour)}, func(t *testing.T, w *harness.World) {
		w.Add(harness.UrlsOf("a.example", 2)...)
		w.Until(time.Hour)
		l := w.Next()
		w.Until(time.Hour + 7*time.Second)
		found, err := w.F.LeaseByID(l.ID())
		require.NoError(t, err)
		require.NoError(t, w.F.Done(found, frontier.Outcome{}))
		w.NothingUntil(time.Hour + 14*time.Second)
	})
}

// The leases of a store that was opened again have ended, and their IDs find nothing.
func TestAnIDFindsNothingAfterReopening(t *testing.T) {
	w := harness.NewStoredWorld(t, frontier.Options{}, spill.Options{})
	w.Add("http://a.example/")
	id := w.Next().ID()
	w.Reopen()
	w.Next()
	_, err := w.F.LeaseByID(id)
	require.ErrorIs(t, err, frontier.ErrNotLeased)
}

// A client in another process gives a lease its ID back.
func TestALeaseIsRestored(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	w.Add("http://a.example/")
	l := w.Next()
	there, err := frontier.RestoreLease(l.ID(), frontier.Lease{Entry: frontier.Entry{URL: l.Entry.URL}, Host: l.Host})
	require.NoError(t, err)
	require.Equal(t, l.ID(), there.ID())
	require.Equal(t, l.Token(), there.Token())
	require.Equal(t, "a.example", there.Host)
	require.False(t, there.ContactOnly())
	require.NoError(t, w.F.Done(there, frontier.Outcome{}))
}

// What is no ID is refused with what is wrong with it.
func TestWhatIsNoLeaseIDIsRefused(t *testing.T) {
	w := harness.NewWorld(t, frontier.Options{})
	require.Empty(t, frontier.Lease{}.ID())
	for id, want := range map[string]string{
		"":                     "frontier: a lease ID of 0 characters; want 16",
		"AAAAAQAAAAAAAAABB":    "frontier: a lease ID of 17 characters; want 16",
		"AAAAAAAA\n\n\n\nAAAA": `frontier: lease ID "AAAAAAAA\n\n\n\nAAAA": it has line breaks`,
		"AAAA+QAAAAAAAAAB":     `frontier: lease ID "AAAA+QAAAAAAAAAB": illegal base64 data at input byte 4`,
	} {
		_, err := w.F.LeaseByID(id)
		require.EqualError(t, err, want)
		_, err = frontier.RestoreLease(id, frontier.Lease{})
		require.EqualError(t, err, want)
	}
	for _, id := range []string{"AAAAAAAAAAAAAAAA", "AAAAAQAAAAAAAAAH", "________________"} {
		_, err := w.F.LeaseByID(id)
		require.ErrorIs(t, err, frontier.ErrNotLeased)
	}
}

// A client cannot derive the ID of another lease from its own: what lies near it, or differs
// from it as two of its own differ, is no lease's.
func TestALeaseIDCannotBeForged(t *testing.T) {
	const n = 300
	w := harness.NewWorld(t, frontier.Options{})
	for i := range n {
		w.Add(fmt.Sprintf("http://host-%d.example/", i))
	}
	out, ids := map[string]bool{}, make([][]byte, n)
	for i := range ids {
		id := w.Next().ID()
		out[id] = true
		ids[i], _ = base64.RawURLEncoding.DecodeString(id)
	}
	forged := func(b []byte) {
		if id := base64.RawURLEncoding.EncodeToString(b); !out[id] {
			_, err := w.F.LeaseByID(id)
			require.ErrorIs(t, err, frontier.ErrNotLeased, id)
		} else {
			require.Contains(t, [2]string{base64.RawURLEncoding.EncodeToString(ids[0]), base64.RawURLEncoding.EncodeToString(ids[1])}, id, "it is derived from others")
		}
	}
	for by := range len(ids[0]) { // one byte at a time
		for x := range 256 {
			b := bytes.Clone(ids[0])
			b[by] ^= byte(x)
			forged(b)
		}
	}
	for step := uint64(1); step < 2*n; step++ { // the next lease, and its record
		for _, record := range []uint64{0, step} {
			b := bytes.Clone(ids[0])
			binary.BigEndian.PutUint32(b, binary.BigEndian.Uint32(b)+uint32(record))
			binary.BigEndian.PutUint64(b[4:], binary.BigEndian.Uint64(b[4:])+step)
			forged(b)
			binary.BigEndian.PutUint64(b[4:], binary.BigEndian.Uint64(ids[0][4:])^step)
			forged(b)
		}
	}
	for _, other := range ids[2:] { // the difference of two
		b := bytes.Clone(other)
		for i := range b {
			b[i] ^= ids[0][i] ^ ids[1][i]
		}
		forged(b)
	}
}
