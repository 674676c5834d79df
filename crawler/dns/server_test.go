// This file is the name server on loopback that the tests ask, and a clock for them.

package dns

import (
	"encoding/binary"
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
	"golang.org/x/net/dns/dnsmessage"
)

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
	edns    dnsmessage.RCode // said in a bare head to questions with EDNS
	drops   bool             // no answer to questions with EDNS
	forged  [][]byte         // sent first
}

// server is a name server over UDP and TCP.
type server struct {
	addr string
	zone zone

	mu    sync.Mutex
	asked map[string]int // by type and name
	tcp   int
	edns  int // questions with EDNS
}

func serve(t testing.TB, z zone) *server {
	t.Helper()
	udp, tcp := samePort(t)
	s := &server{addr: udp.LocalAddr().String(), zone: z, asked: map[string]int{}}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			buf := make([]byte, 1500)
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			wg.Go(func() {
				for _, out := range s.answers(buf[:n], false) {
					_, _ = udp.WriteTo(out, from)
				}
			})
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
	edns := binary.BigEndian.Uint16(msg[10:]) > 0
	if edns {
		s.mu.Lock()
		s.edns++
		s.mu.Unlock()
	}
	if a.silent || a.drops && edns {
		return nil
	}
	if a.edns > 0 && edns {
		head := dnsmessage.Message{Header: dnsmessage.Header{ID: h.ID, Response: true, RCode: a.edns}}
		msg, _ := head.Pack()
		return [][]byte{msg}
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

func (c *clock) now() time.Time { return time.Unix(1e9, c.at.Load()) }

func (c *clock) move(d time.Duration) { c.at.Add(int64(d)) }

func resolver(t testing.TB, o Options) (*Resolver, *clock) {
	t.Helper()
	c := new(clock)
	o.Now = c.now
	r, err := New(o)
	require.NoError(t, err)
	if r.servers != nil {
		r.servers.patience = time.Hour // on a slow machine, too, both kinds count
	}
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

func (c *cache) check() bool {
	for name, e := range c.names {
		if e.Value.(*record).name != name {
			return false
		}
	}
	return len(c.names) == c.used.Len() && c.used.Len() <= c.limit
}
