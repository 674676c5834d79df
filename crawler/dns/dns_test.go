// These tests ask a real name server on loopback.

package dns

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// zone says what a server answers for a name and a type.
type zone func(name string, t dnsmessage.Type) said

// said is an answer.
type said struct {
	addrs   []string
	ttl     uint32
	aliases [][2]string // in the answer
	code    dnsmessage.RCode
	soa     uint32 // minimum of the SOA in the authority section; 0: none
	cut     bool   // over UDP only
	silent  bool
	forged  [][]byte // sent first
}

// server is a name server over UDP and TCP.
type server struct {
	addr string
	zone zone

	mu    sync.Mutex
	asked map[string]int // by type and name
	tcp   int
}

func serve(t testing.TB, z zone) *server {
	t.Helper()
	udp, tcp := samePort(t)
	s := &server{addr: udp.LocalAddr().String(), zone: z, asked: map[string]int{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			for _, out := range s.answers(buf[:n], false) {
				_, _ = udp.WriteTo(out, from)
			}
		}
	})
	wg.Go(func() {
		for {
			c, err := tcp.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				var size [2]byte
				if _, err := io.ReadFull(c, size[:]); err != nil {
					return
				}
				buf := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(c, buf); err != nil {
					return
				}
				for _, out := range s.answers(buf, true) {
					_, _ = c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(out))), out...))
				}
			})
		}
	})
	t.Cleanup(func() { udp.Close(); tcp.Close(); wg.Wait() })
	return s
}

// samePort listens on one port with both protocols.
func samePort(t testing.TB) (net.PacketConn, net.Listener) {
	t.Helper()
	for range 100 {
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		udp, err := net.ListenPacket("udp", tcp.Addr().String())
		if err == nil {
			return udp, tcp
		}
		tcp.Close()
	}
	require.FailNow(t, "no port is free for both")
	return nil, nil
}

func (s *server) answers(msg []byte, tcp bool) [][]byte {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	name := strings.TrimSuffix(q.Name.String(), ".")
	s.mu.Lock()
	s.asked[q.Type.String()[4:]+" "+name]++
	if tcp {
		s.tcp++
	}
	s.mu.Unlock()
	a := s.zone(name, q.Type)
	if a.silent {
		return nil
	}
	return append(a.forged, build(h.ID, q, a, a.cut && !tcp))
}

func build(id uint16, q dnsmessage.Question, a said, cut bool) []byte {
	b := dnsmessage.NewBuilder(nil, dnsmessage.Header{ID: id, Response: true, RCode: a.code, Truncated: cut})
	_ = b.StartQuestions()
	_ = b.Question(q)
	_ = b.StartAnswers()
	name := q.Name
	if !cut {
		for _, x := range a.aliases {
			_ = b.CNAMEResource(dnsmessage.ResourceHeader{Name: dnsmessage.MustNewName(x[0] + "."), Class: q.Class, TTL: a.ttl},
				dnsmessage.CNAMEResource{CNAME: dnsmessage.MustNewName(x[1] + ".")})
			name = dnsmessage.MustNewName(x[1] + ".")
		}
		for _, s := range a.addrs {
			addr := netip.MustParseAddr(s)
			h := dnsmessage.ResourceHeader{Name: name, Class: q.Class, TTL: a.ttl}
			if addr.Is4() && q.Type == dnsmessage.TypeA {
				_ = b.AResource(h, dnsmessage.AResource{A: addr.As4()})
			} else if addr.Is6() && q.Type == dnsmessage.TypeAAAA {
				_ = b.AAAAResource(h, dnsmessage.AAAAResource{AAAA: addr.As16()})
			}
		}
	}
	_ = b.StartAuthorities()
	if a.soa > 0 {
		root := dnsmessage.MustNewName(".")
		_ = b.SOAResource(dnsmessage.ResourceHeader{Name: root, Class: q.Class, TTL: a.soa + 9}, dnsmessage.SOAResource{NS: root, MBox: root, MinTTL: a.soa})
	}
	msg, _ := b.Finish()
	return msg
}

func (s *server) count(question string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[question]
}

// clock is a time that tests move.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(1e9, c.at.Load()) }
func (c *clock) move(d time.Duration) { c.at.Add(int64(d)) }

func resolver(t testing.TB, o Options) (*Resolver, *clock) {
	t.Helper()
	c := new(clock)
	o.Now = c.now
	r, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() {
		r.Close()
		assert.True(t, r.cache.check())
		assert.Empty(t, r.under)
		assert.Zero(t, r.ahead)
	})
	return r, c
}

func addrs(names ...string) (out []netip.Addr) {
	for _, n := range names {
		out = append(out, netip.MustParseAddr(n))
	}
	return out
}

func fixed(a said) zone { return func(string, dnsmessage.Type) said { return a } }

func TestAnswersAreKeptForTheirTTL(t *testing.T) {
	s := serve(t, fixed(said{addrs: []string{"192.0.2.1", "2001:db8::1"}, ttl: 60}))
	r, c := resolver(t, Options{Servers: []string{s.addr}})
	for _, at := range []struct {
		after time.Duration
		asked int
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {59 * time.Second, 2}, {time.Hour, 3}} {
		c.move(at.after)
		got, err := r.Lookup(t.Context(), "A.example.")
		require.NoError(t, err)
		assert.Equal(t, addrs("192.0.2.1", "2001:db8::1"), got)
		assert.Equal(t, at.asked, s.count("A a.example"))
		assert.Equal(t, at.asked, s.count("AAAA a.example"))
	}
	assert.Equal(t, Stats{Lookups: 5, Hits: 2, Queries: 6, Names: 1}, r.Stats())
}

func TestTTLBounds(t *testing.T) {
	ttl := map[string]uint32{"zero.example": 0, "long.example": 1 << 30, "odd.example": 1 << 31}
	s := serve(t, func(name string, _ dnsmessage.Type) said { return said{addrs: []string{"192.0.2.1"}, ttl: ttl[name]} })
	r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, MinTTL: 5 * time.Second, MaxTTL: time.Hour})
	for name, holds := range map[string]time.Duration{"zero.example": 5 * time.Second, "odd.example": 5 * time.Second, "long.example": time.Hour} {
		for i, wait := range []time.Duration{0, holds - 1, 1} {
			c.move(wait)
			_, err := r.Lookup(t.Context(), name)
			require.NoError(t, err)
			assert.Equal(t, 1+i/2, s.count("A "+name), "%s %d", name, i)
		}
	}
}

func TestNoAddressIsRememberedAsTheZoneSays(t *testing.T) {
	s := serve(t, func(name string, _ dnsmessage.Type) said {
		switch name {
		case "gone.example":
			return said{code: dnsmessage.RCodeNameError, soa: 30}
		case "empty.example":
			return said{soa: 30}
		case "day.example":
			return said{code: dnsmessage.RCodeNameError, soa: 86400}
		}
		return said{code: dnsmessage.RCodeNameError}
	})
	r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true})
	for name, holds := range map[string]time.Duration{
		"gone.example": 30 * time.Second, "empty.example": 30 * time.Second, "day.example": 15 * time.Minute, "silent.example": time.Minute,
	} {
		for i, wait := range []time.Duration{0, holds - 1, 1} {
			c.move(wait)
			_, err := r.Lookup(t.Context(), name)
			var e *net.DNSError
			require.ErrorAs(t, err, &e)
			assert.True(t, e.IsNotFound, name)
			assert.Equal(t, 1+i/2, s.count("A "+name), "%s %d", name, i)
		}
	}
	assert.EqualValues(t, 4, r.Stats().Negative)
}

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

func TestLookupsOfOneNameShareAnAnswer(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(string, dnsmessage.Type) said {
		<-hold
		return said{addrs: []string{"192.0.2.1"}, ttl: 60}
	})
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, Timeout: time.Minute})
	gaveUp, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			ctx := t.Context()
			if i == 0 {
				ctx = gaveUp
			}
			got, err := r.Lookup(ctx, "a.example")
			if i == 0 {
				assert.ErrorIs(t, err, context.Canceled)
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, addrs("192.0.2.1"), got)
		})
	}
	require.Eventually(t, func() bool { return r.counted.lookups.Load() == 50 && s.count("A a.example") == 1 }, 10*time.Second, time.Millisecond)
	cancel()
	close(hold)
	wg.Wait()
	assert.Equal(t, 1, s.count("A a.example"))
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
	r, _ := resolver(t, Options{Servers: []string{ill.addr, dead.addr, well.addr}, NoIPv6: true, Timeout: 50 * time.Millisecond})
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
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, Timeout: 20 * time.Millisecond, Tries: 2})
	_, err := r.Lookup(t.Context(), "a.example")
	var e *net.DNSError
	require.ErrorAs(t, err, &e)
	assert.True(t, e.IsTimeout)
	assert.Equal(t, 2, s.count("A a.example"))
}

func TestTheCacheIsBounded(t *testing.T) {
	s := serve(t, fixed(said{addrs: []string{"192.0.2.1"}, ttl: 60}))
	r, _ := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, MaxNames: 10})
	for i := range 30 {
		for _, name := range []string{"often.example", fmt.Sprintf("n%d.example", i)} {
			_, err := r.Lookup(t.Context(), name)
			require.NoError(t, err)
		}
	}
	assert.Equal(t, 10, r.Stats().Names)
	assert.Equal(t, 1, s.count("A often.example"), "the least recently used goes")
}

func TestPrefetch(t *testing.T) {
	hold := make(chan struct{})
	s := serve(t, func(name string, _ dnsmessage.Type) said {
		if strings.HasPrefix(name, "slow") {
			<-hold
		}
		return said{addrs: []string{"192.0.2.1"}, ttl: 100}
	})
	r, c := resolver(t, Options{Servers: []string{s.addr}, NoIPv6: true, MaxPrefetch: 1, Timeout: time.Minute})
	settled := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.under) == 0
	}
	ahead := func(name string) {
		r.Prefetch(name)
		require.Eventually(t, settled, 10*time.Second, time.Millisecond)
	}
	ahead("a.example")
	ahead("a.example")
	c.move(89 * time.Second)
	ahead("a.example")
	assert.Equal(t, 1, s.count("A a.example"), "known for a while")
	c.move(2 * time.Second)
	ahead("a.example")
	assert.Equal(t, 2, s.count("A a.example"), "about to expire")
	got, err := r.Lookup(t.Context(), "a.example")
	require.NoError(t, err)
	assert.Equal(t, addrs("192.0.2.1"), got)
	assert.EqualValues(t, 1, r.Stats().Hits)
	r.Prefetch("192.0.2.1")
	r.Prefetch("not a name")
	r.Prefetch("slow.example")
	r.Prefetch("left-out.example")
	close(hold)
	require.Eventually(t, settled, 10*time.Second, time.Millisecond)
	assert.Zero(t, s.count("A left-out.example"))
	assert.EqualValues(t, 3, r.Stats().Prefetched)
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
