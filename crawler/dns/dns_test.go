// These tests ask a real name server on loopback.

package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOneKindOfAddressIsEnough(t *testing.T) {
	s := serve(t, func(name string, q dnsmessage.Type) said {
		if (q == dnsmessage.TypeA) == strings.HasPrefix(name, "four") {
			return said{addrs: []string{"192.0.2.1", "2001:db8::1"}, ttl: 9}
		}
		return said{code: dnsmessage.RCodeServerFailure}
	})
	r, _ := resolver(t, Options{Servers: []string{s.addr}})
	got, err := r.Lookup(t.Context(), "four.example")
	require.NoError(t, err)
	assert.Equal(t, addrs("192.0.2.1"), got)
	got, err = r.Lookup(t.Context(), "six.example")
	require.NoError(t, err)
	assert.Equal(t, addrs("2001:db8::1"), got)
}

// One kind of address is used when the other does not come, and the other when it has come.
func TestOneKindOfAddressDoesNotWait(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(name string, q dnsmessage.Type) said {
		if name == "slow.example" && q == dnsmessage.TypeAAAA {
			<-hold
		}
		silent := name == "four.example" && q == dnsmessage.TypeAAAA || name == "six.example" && q == dnsmessage.TypeA
		return said{addrs: []string{"192.0.2.1", "2001:db8::1"}, ttl: 60, silent: silent}
	})
	r, _ := resolver(t, Options{Servers: []string{s.addr}, Timeout: time.Hour})
	r.servers.patience = time.Millisecond
	for name, want := range map[string]string{"four.example": "192.0.2.1", "six.example": "2001:db8::1"} {
		got, err := r.Lookup(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, addrs(want), got)
	}
	got, err := r.Lookup(t.Context(), "slow.example")
	require.NoError(t, err)
	assert.Equal(t, addrs("192.0.2.1"), got)
	close(hold)
	require.Eventually(t, func() bool {
		got, err := r.Lookup(t.Context(), "slow.example")
		return err == nil && len(got) == 2
	}, 10*time.Second, time.Millisecond)
	assert.Equal(t, 1, s.count("A slow.example"))
}

func TestServersThatDoNotKnowEDNS(t *testing.T) {
	for what, a := range map[string]said{
		"FORMERR": {edns: dnsmessage.RCodeFormatError}, "NOTIMP": {edns: dnsmessage.RCodeNotImplemented}, "SERVFAIL": {edns: dnsmessage.RCodeServerFailure}, "silence": {drops: true},
	} {
		a.addrs, a.ttl = []string{"192.0.2.1"}, 60
		s := serve(t, fixed(a))
		r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, Timeout: 100 * time.Millisecond, Tries: 20})
		for i, name := range []string{"a.example", "b.example", "c.example"} {
			if i == 2 {
				c.move(plainFor)
			}
			got, err := r.Lookup(t.Context(), name)
			require.NoError(t, err, what)
			assert.Equal(t, addrs("192.0.2.1"), got, what)
			s.mu.Lock()
			assert.Equal(t, 1+i/2, s.edns, "%s: remembered, and tried again after a while", what)
			s.mu.Unlock()
		}
	}
	both := serve(t, fixed(said{code: dnsmessage.RCodeServerFailure}))
	r, _ := resolver(t, Options{Servers: []string{both.addr}, NoIPv6: true, Tries: 2})
	_, err := r.Lookup(t.Context(), "a.example")
	assert.ErrorContains(t, err, "server answers ServerFailure")
	assert.Empty(t, r.servers.plain, "EDNS is not what it is about")
}

func TestAliases(t *testing.T) {
	s := serve(t, func(name string, _ dnsmessage.Type) said {
		switch name {
		case "www.example":
			return said{aliases: [][2]string{{"www.example", "b.example"}, {"b.example", "c.example"}}, addrs: []string{"192.0.2.3"}, ttl: 7}
		case "half.example": // the server does not follow
			return said{aliases: [][2]string{{"half.example", "plain.example"}}, ttl: 7}
		case "plain.example":
			return said{addrs: []string{"192.0.2.4"}, ttl: 7}
		case "loop.example":
			return said{aliases: [][2]string{{"loop.example", "loop.example"}}, ttl: 7}
		case "evil.example": // an address of a name that was not asked for
			return said{aliases: [][2]string{{"other.example", "bank.example"}}, addrs: []string{"192.0.2.66"}, ttl: 7}
		}
		n := 0
		_, _ = fmt.Sscanf(name, "n%d.example", &n)
		return said{aliases: [][2]string{{name, fmt.Sprintf("n%d.example", n+1)}}, ttl: 7}
	})
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true})
	for name, want := range map[string][]netip.Addr{
		"www.example": addrs("192.0.2.3"), "half.example": addrs("192.0.2.4"), "loop.example": nil, "evil.example": nil, "n0.example": nil,
	} {
		got, err := r.Lookup(t.Context(), name)
		assert.Equal(t, want, got, name)
		assert.Equal(t, want == nil, err != nil, name)
	}
	assert.Zero(t, s.count("A n9.example"), "endless chains end")
}

func TestCutAnswersAreAskedForOverTCP(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("192.0.2.%d", i))
	}
	s := serve(t, fixed(said{addrs: many, ttl: 60, cut: true}))
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true})
	got, err := r.Lookup(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, 1, s.tcp)
	assert.Len(t, got, maxAddrs, "as many as are kept")
	got, err = r.Lookup(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Len(t, got, maxAddrs, "bounded")
}

func TestForgedAnswersAreNotRead(t *testing.T) {
	evil := said{addrs: []string{"192.0.2.66"}, ttl: 60}
	question := func(name string, t dnsmessage.Type) dnsmessage.Question {
		return dnsmessage.Question{Name: dnsmessage.MustNewName(name), Type: t, Class: dnsmessage.ClassINET}
	}
	var forged [][]byte
	for _, q := range []dnsmessage.Question{question("a.example.", dnsmessage.TypeA), question("b.example.", dnsmessage.TypeA), question("a.example.", dnsmessage.TypeAAAA)} {
		for id := range 3 { // none is likely to be the one; see build for a right one
			forged = append(forged, build(uint16(id), q, evil, false))
		}
	}
	forged = append(forged, nil, []byte("x"), make([]byte, 12), make([]byte, 1400))
	s := serve(t, fixed(said{addrs: []string{"192.0.2.1"}, ttl: 60, forged: forged}))
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true})
	got, err := r.Lookup(t.Context(), "a.example")
	require.NoError(t, err)
	if got[0] != netip.MustParseAddr("192.0.2.66") { // one time in 20,000 an ID is hit
		assert.Equal(t, addrs("192.0.2.1"), got)
	}
	// The right ID with another question is no answer either.
	q := question("a.example.", dnsmessage.TypeA)
	_, err = read(build(7, question("b.example.", dnsmessage.TypeA), evil, false), 7, q)
	assert.ErrorIs(t, err, errNotOurs)
	_, err = read(build(7, q, evil, false), 8, q)
	assert.ErrorIs(t, err, errNotOurs)
	_, err = read(build(7, question("A.eXample.", dnsmessage.TypeA), evil, false), 7, q)
	assert.NoError(t, err)
}

func TestServersStandInForEachOther(t *testing.T) {
	ill := serve(t, fixed(said{code: dnsmessage.RCodeServerFailure}))
	dead := serve(t, fixed(said{silent: true}))
	well := serve(t, fixed(said{addrs: []string{"192.0.2.1"}, ttl: 60}))
	r, _ := resolver(t, Options{Servers: []string{ill.addr, dead.addr, well.addr}, NoIPv6: true})
	for _, name := range []string{"a.example", "b.example"} {
		got, err := r.Lookup(t.Context(), name)
		require.NoError(t, err)
		assert.Equal(t, addrs("192.0.2.1"), got)
	}
	assert.Zero(t, ill.count("A b.example")+dead.count("A b.example"), "the one that answered is asked on")
}

func TestWithoutAnAnswer(t *testing.T) {
	var ill atomic.Bool
	s := serve(t, func(string, dnsmessage.Type) said {
		if ill.Load() {
			return said{code: dnsmessage.RCodeServerFailure}
		}
		return said{addrs: []string{"192.0.2.1"}, ttl: 60}
	})
	r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, Stale: time.Hour, Tries: 2})
	_, err := r.Lookup(t.Context(), "a.example")
	require.NoError(t, err)
	ill.Store(true)
	for range 3 { // an old address is better than none
		c.move(2 * time.Minute)
		got, err := r.Lookup(t.Context(), "a.example")
		require.NoError(t, err)
		assert.Equal(t, addrs("192.0.2.1"), got)
	}
	assert.EqualValues(t, 3, r.Stats().Stale)
	c.move(time.Hour)
	_, err = r.Lookup(t.Context(), "a.example")
	var e *net.DNSError
	require.ErrorAs(t, err, &e, "but not for ever")
	assert.False(t, e.IsNotFound)
	assert.True(t, e.IsTemporary)
	asked := s.count("A a.example")
	_, err = r.Lookup(t.Context(), "a.example")
	assert.Error(t, err)
	assert.Equal(t, asked, s.count("A a.example"), "servers in trouble are left alone for a while")
	ill.Store(false)
	c.move(failureTTL)
	_, err = r.Lookup(t.Context(), "a.example")
	assert.NoError(t, err)
}

func TestTimeouts(t *testing.T) {
	s := serve(t, fixed(said{silent: true}))
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, Timeout: 200 * time.Millisecond, Tries: 2})
	_, err := r.Lookup(t.Context(), "a.example")
	var e *net.DNSError
	require.ErrorAs(t, err, &e)
	assert.True(t, e.IsTimeout)
	assert.Eventually(t, func() bool { return s.count("A a.example") == 2 }, 10*time.Second, time.Millisecond)
}

func TestNamesThatNoServerIsAsked(t *testing.T) {
	s := serve(t, fixed(said{addrs: []string{"192.0.2.1"}, ttl: 60}))
	r, _ := resolver(t, Options{Servers: []string{s.addr}})
	for host, want := range map[string][]netip.Addr{
		"192.0.2.7": addrs("192.0.2.7"), "[2001:db8::7]": addrs("2001:db8::7"), "LOCALHOST.": addrs("127.0.0.1", "::1"), "x.localhost": addrs("127.0.0.1", "::1"),
		"a.invalid": nil, "abc.onion": nil, "": nil, "a..example": nil, "a b.example": nil, "a\x00.example": nil,
		strings.Repeat("a", 64) + ".example": nil, strings.Repeat("abc.", 64) + "example": nil,
	} {
		got, err := r.Lookup(t.Context(), host)
		assert.Equal(t, want, got, host)
		assert.Equal(t, want == nil, err != nil, host)
	}
	assert.Zero(t, r.Stats().Queries)
}

func TestTheSystemsResolver(t *testing.T) {
	r, c := resolver(t, Options{SystemTTL: time.Minute})
	for i, wait := range []time.Duration{0, time.Minute - 1, 1} {
		c.move(wait)
		got, err := r.Lookup(t.Context(), "localhost")
		require.NoError(t, err)
		assert.True(t, got[0].Unmap().IsLoopback())
		assert.EqualValues(t, 1+i/2, r.Stats().Queries)
	}
}

func TestClose(t *testing.T) {
	s := serve(t, fixed(said{silent: true}))
	r, _ := resolver(t, Options{Servers: []string{s.addr}, Timeout: time.Hour})
	failed := make(chan error)
	go func() { _, err := r.Lookup(t.Context(), "a.example"); failed <- err }()
	require.Eventually(t, func() bool { return s.count("A a.example") > 0 }, 10*time.Second, time.Millisecond)
	r.Close()
	assert.ErrorIs(t, <-failed, ErrClosed)
	_, err := r.Lookup(t.Context(), "b.example")
	assert.ErrorIs(t, err, ErrClosed)
	r.Prefetch("c.example")
	r.Close()
}

func TestOptionsReportEveryFault(t *testing.T) {
	_, err := New(Options{Servers: []string{"ns.example", "192.0.2.1", "[::1]:53"}, Timeout: -1, Tries: -2, MinTTL: 48 * time.Hour})
	for _, want := range []string{`Servers has "ns.example"`, "Timeout is -1ns", "Tries is -2", "want MinTTL <= MaxTTL"} {
		assert.ErrorContains(t, err, want)
	}
	assert.NotContains(t, err.Error(), "192.0.2.1")
}

func FuzzRead(f *testing.F) {
	q := dnsmessage.Question{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	for _, a := range []said{
		{addrs: []string{"192.0.2.1", "192.0.2.2"}, ttl: 60}, {code: dnsmessage.RCodeNameError, soa: 30},
		{aliases: [][2]string{{"a.example", "b.example"}, {"b.example", "a.example"}}, ttl: 1 << 31},
	} {
		f.Add(build(7, q, a, false))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		r, err := read(msg, 7, q)
		if err != nil {
			return
		}
		if r.ttl < 0 || r.alias == "a.example." {
			t.Errorf("%+v", r)
		}
		for _, a := range r.addrs {
			if !a.Is4() {
				t.Errorf("%v is no answer to a question for IPv4", a)
			}
		}
	})
}

// The system is not to try a name below its search domains, as in Kubernetes, before it
// is asked for itself.
func TestTheSystemIsAskedForRootedNames(t *testing.T) {
	r, err := New(Options{})
	require.NoError(t, err)
	defer r.Close()
	var asked []string
	r.system = func(_ context.Context, _, host string) ([]netip.Addr, error) {
		asked = append(asked, host)
		return []netip.Addr{netip.MustParseAddr("192.0.2.1")}, nil
	}
	for _, name := range []string{"a.example", "b.a.example.", "wiki"} {
		_, err := r.Lookup(t.Context(), name)
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"a.example.", "b.a.example.", "wiki"}, asked)
}
