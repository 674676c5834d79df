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

	mu    sync.Mutex
	first int // guarded by mu; index of the server that answered last
}

// find queries both kinds of addresses of a name and follows its aliases.
func (s *servers) find(ctx context.Context, name string) answer {
	types := []dnsmessage.Type{dnsmessage.TypeA, dnsmessage.TypeAAAA}
	if s.opts.NoIPv6 {
		types = types[:1]
	}
	got := make([]answer, len(types))
	var wg sync.WaitGroup
	for i, t := range types {
		wg.Go(func() { got[i] = s.follow(ctx, name, t) })
	}
	wg.Wait()
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
	for try := range s.opts.Tries {
		i := (first + try) % len(s.addrs)
		r, err := s.exchange(ctx, s.addrs[i], q)
		if err == nil {
			if try > 0 {
				s.mu.Lock()
				s.first = i
				s.mu.Unlock()
			}
			return r, nil
		}
		last = err
		if ctx.Err() != nil {
			return reply{}, ctx.Err()
		}
	}
	return reply{}, last
}

// exchange asks one server once, over TCP too if necessary.
func (s *servers) exchange(ctx context.Context, server netip.AddrPort, q dnsmessage.Question) (reply, error) {
	r, err := s.over(ctx, "udp", server, q)
	if errors.Is(err, errTruncated) {
		return s.over(ctx, "tcp", server, q)
	}
	return r, err
}

// over sends a question and waits for its answer.
func (s *servers) over(ctx context.Context, network string, server netip.AddrPort, q dnsmessage.Question) (reply, error) {
	s.count()
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	id := uint16(rand.Uint32())
	msg, err := ask(id, q)
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
	var timeout bool
	if e, ok := errors.AsType[net.Error](err); ok {
		timeout = e.Timeout()
	}
	timeout = timeout || errors.Is(err, context.DeadlineExceeded)
	return &net.DNSError{UnwrapErr: err, Err: err.Error(), Name: name, IsTimeout: timeout, IsTemporary: true}
}

func isNotFound(err error) bool {
	e, ok := errors.AsType[*net.DNSError](err)
	return ok && e.IsNotFound
}
