// This file asks servers over UDP and TCP.

package dns

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// servers asks name servers.
type servers struct {
	opts  *Options
	addrs []netip.AddrPort
	count func() // called for each question

	// patience is how long one kind of address waits for the other: the Resolution Delay of RFC 8305.
	patience time.Duration
	calls    *sync.WaitGroup

	mu    sync.Mutex
	first int               // guarded by mu; index of the server that answered last
	plain map[int]time.Time // guarded by mu; until when servers are asked without EDNS
}

const (
	resolutionDelay = 50 * time.Millisecond // RFC 8305 section 8
	plainFor        = time.Hour             // how long a server that did not understand EDNS is asked without
)

// find queries both kinds of addresses of a name and follows its aliases. If only one kind answers in time, late
// gets all addresses when the other has.
func (s *servers) find(ctx context.Context, name string, late func(answer)) answer {
	types := []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}
	if s.opts.NoIPv6 {
		types = types[:1]
	}
	type came struct {
		kind int
		answer
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.opts.Tries)*2*s.opts.Timeout)
	end := cancel
	defer func() { end() }()
	answers := make(chan came, len(types))
	for i, t := range types {
		s.calls.Go(func() { answers <- came{i, s.follow(ctx, name, t)} })
	}
	got := make([]answer, len(types))
	var enough <-chan time.Time
	for range types {
		select {
		case a := <-answers:
			got[a.kind] = a.answer
			if len(a.addrs) > 0 && enough == nil {
				enough = time.After(s.patience)
			}
		case <-enough:
			first := merge(name, got)
			end = func() {}
			s.calls.Go(func() {
				defer cancel()
				if a := <-answers; len(a.addrs) > 0 {
					got[a.kind] = a.answer
					late(merge(name, got))
				}
			})
			return first
		}
	}
	return merge(name, got)
}

// merge combines the answers for IPv4 and IPv6. An address of one kind is usable whatever happened
// to the other query.
func merge(name string, got []answer) answer {
	out := answer{ttl: -1}
	for _, a := range got {
		if len(a.addrs) > 0 {
			out.addrs = append(out.addrs, a.addrs...)
			if out.ttl < 0 || a.ttl < out.ttl {
				out.ttl = a.ttl
			}
		}
	}
	if len(out.addrs) > 0 {
		return out
	}
	for _, a := range got {
		if !isNotFound(a.err) {
			return a // unknown is not the same as none
		}
		if out.ttl < 0 || a.ttl < out.ttl {
			out.ttl = a.ttl
		}
	}
	out.err = got[0].err
	return out
}

// follow queries one kind of address, along aliases.
func (s *servers) follow(ctx context.Context, name string, t dnsmessage.Type) answer {
	target := name
	for range maxChain {
		r, err := s.query(ctx, target, t)
		switch {
		case err != nil:
			return answer{err: asDNSError(name, err)}
		case len(r.addrs) > 0:
			return answer{addrs: r.addrs, ttl: r.ttl}
		case r.gone:
			return answer{err: notFound(name, "no such host"), ttl: r.ttl}
		case r.alias == "":
			return answer{err: notFound(name, "no address"), ttl: r.ttl}
		}
		target = r.alias
	}
	return answer{err: asDNSError(name, errAliases)}
}

// query asks servers in turn until one answers.
func (s *servers) query(ctx context.Context, name string, t dnsmessage.Type) (reply, error) {
	n, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return reply{}, err
	}
	q := dnsmessage.Question{Name: n, Type: t, Class: dnsmessage.ClassINET}
	s.mu.Lock()
	first := s.first
	s.mu.Unlock()
	var last error
	silent := map[int]bool{} // perhaps servers, or what is before them, drop EDNS
	for try := range s.opts.Tries {
		i := (first + try) % len(s.addrs)
		knows := s.knowsEDNS(i)
		edns := knows && !silent[i]
		r, err := s.exchange(ctx, s.addrs[i], q, edns)
		if edns && refusesEDNS(err) {
			edns = false
			r, err = s.exchange(ctx, s.addrs[i], q, edns)
		}
		if err == nil {
			s.mu.Lock()
			if try > 0 {
				s.first = i
			}
			if knows && !edns {
				s.plain[i] = s.opts.Now().Add(plainFor)
			}
			s.mu.Unlock()
			return r, nil
		}
		last = err
		silent[i] = silent[i] || errors.Is(err, context.DeadlineExceeded)
		if ctx.Err() != nil {
			return reply{}, ctx.Err()
		}
	}
	return reply{}, last
}

// knowsEDNS reports whether a server may understand EDNS.
func (s *servers) knowsEDNS(i int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return left(s.plain[i], s.opts.Now()) <= 0
}

// exchange asks one server once, over TCP too if necessary.
func (s *servers) exchange(ctx context.Context, server netip.AddrPort, q dnsmessage.Question, edns bool) (reply, error) {
	r, err := s.over(ctx, "udp", server, q, edns)
	if errors.Is(err, errTruncated) {
		return s.over(ctx, "tcp", server, q, edns)
	}
	return r, err
}

// over sends a question and waits for its answer.
func (s *servers) over(ctx context.Context, network string, server netip.AddrPort, q dnsmessage.Question, edns bool) (reply, error) {
	s.count()
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	id := uint16(rand.Uint32())
	msg, err := ask(id, q, edns)
	if err != nil {
		return reply{}, err
	}
	c, err := s.opts.Dial(ctx, network, server.String()) // from a new port each time
	if err != nil {
		return reply{}, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
	r, err := talk(c, network == "tcp", msg, id, q)
	if ctx.Err() != nil && err != nil {
		return reply{}, ctx.Err()
	}
	return r, err
}

// talk sends a question and reads until its answer arrives.
func talk(c net.Conn, stream bool, msg []byte, id uint16, q dnsmessage.Question) (reply, error) {
	if stream {
		msg = append(binary.BigEndian.AppendUint16(nil, uint16(len(msg))), msg...)
	}
	if _, err := c.Write(msg); err != nil {
		return reply{}, err
	}
	buf := make([]byte, payload)
	for {
		n, err := 0, error(nil)
		if stream {
			var size [2]byte
			if _, err := io.ReadFull(c, size[:]); err != nil {
				return reply{}, err
			}
			buf = make([]byte, binary.BigEndian.Uint16(size[:]))
			n, err = io.ReadFull(c, buf)
		} else {
			n, err = c.Read(buf)
		}
		if err != nil {
			return reply{}, err
		}
		r, err := read(buf[:n], id, q)
		if errors.Is(err, errNotOurs) && !stream {
			continue // forged, or late: the answer may still come
		}
		return r, err
	}
}

// asDNSError converts an error to what callers of net expect.
func asDNSError(name string, err error) error {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		return e
	}
	e, ok := errors.AsType[net.Error](err)
	timeout := ok && e.Timeout() || errors.Is(err, context.DeadlineExceeded)
	return &net.DNSError{UnwrapErr: err, Err: err.Error(), Name: name, IsTimeout: timeout, IsTemporary: true}
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}
