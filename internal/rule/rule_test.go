package rule

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-7440039f/frontier/internal/hostkey"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type value struct {
	key    string
	fields Fields
}

func fieldsOf(v *value) Fields { return v.fields }

// keysOf are the keys that concern a host, the most specific first.
func keysOf(host string) []string {
	keys := []string{Host(host), Domain(host)}
	for at := host; host != "127.0.0.1" && strings.Contains(at, "."); {
		_, at, _ = strings.Cut(at, ".")
		keys = append(keys, Domain(at))
	}
	return append(keys, All)
}

// A host's values are those of its own key, its domains and all hosts, in that order;
// what was loaded does not change.
func TestTableAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"org", "a.org", "b.a.org", "aa.org", "x", "127.0.0.1", "1", ".org", "org."})
		key := rapid.Custom(func(t *rapid.T) string {
			n := name.Draw(t, "name")
			return rapid.SampledFrom([]string{All, Host(n), Domain(n)}).Draw(t, "key")
		})
		var table Table[value]
		want := map[string]*value{}
		var before *Values[value]
		var wantBefore []*value
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				before = table.Load()
				wantBefore = nil
				for _, v := range before.All() {
					wantBefore = append(wantBefore, v)
				}
				v := &value{key.Draw(t, "of"), Fields(rapid.IntRange(0, 7).Draw(t, "fields"))}
				require.Same(t, want[v.key], table.Put(v.key, v, v.fields))
				if want[v.key] = v; v.fields == 0 {
					delete(want, v.key)
				}
			},
			"": func(t *rapid.T) {
				x := table.Load()
				x.Check(t.Errorf, fieldsOf)
				require.Equal(t, len(want), x.Len())
				var all []*value
				for _, v := range before.All() {
					all = append(all, v)
				}
				require.Equal(t, wantBefore, all)
				host := name.Draw(t, "host")
				var of []*value
				for _, k := range keysOf(host) {
					require.Same(t, want[k], table.Get(k))
					if want[k] != nil {
						of = append(of, want[k])
					}
				}
				var got []*value
				x.Visit([]byte(host), func(v *value) bool { got = append(got, v); return true })
				require.Equal(t, of, got, host)
				f := Fields(rapid.IntRange(1, 7).Draw(t, "f"))
				var first *value
				if i := slices.IndexFunc(of, func(v *value) bool { return v.fields&f != 0 }); i >= 0 {
					first = of[i]
				}
				require.Same(t, first, x.First([]byte(host), f))
				if first != nil {
					require.True(t, x.Set(f))
				}
			},
		})
	})
}

func TestKeys(t *testing.T) {
	for _, name := range []string{"org", "a.org", "127.0.0.1", "2001:db8::1", "!", "a."} {
		got, domain, ok := Parse(Host(name))
		require.Equal(t, []any{name, false, true}, []any{got, domain, ok})
		got, domain, ok = Parse(Domain(name))
		require.Equal(t, []any{name, true, true}, []any{got, domain, ok})
		require.True(t, strings.HasPrefix(hostkey.Reversed("b."+name), Domain(name)) || strings.ContainsAny(name, ":1"))
	}
	_, _, ok := Parse("org")
	require.False(t, ok)
}

// Readers and a writer need no lock; a look-up takes no memory.
func TestReadersTakeNoLock(t *testing.T) {
	var table Table[value]
	host := []byte("www.a.example.org")
	look := func() {
		table.Load().First(host, 1)
		table.Get("a.")
	}
	require.Zero(t, testing.AllocsPerRun(100, look))
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for range 1000 {
				look()
			}
		})
	}
	for i := range 100 {
		k := Domain(fmt.Sprintf("%d.example", i))
		table.Put(k, &value{k, 1}, 1)
	}
	readers.Wait()
	require.Nil(t, table.Load().First(host, 1))
	k := Domain("example.org")
	table.Put(k, &value{k, 1}, 1)
	require.Equal(t, k, table.Load().First(host, 1).key)
	require.Zero(t, testing.AllocsPerRun(100, look))
}
