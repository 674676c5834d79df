// This file moves the messages of PutURLs and PutDiscovered: a stream is read while what came
// before is committed and acknowledged, up to a number of messages.

package urlfrontier

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"sync"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// How many messages of a stream are read without being acknowledged, and about how many bytes.
const (
	unackedURLs    = 1024
	unackedBatches = 16
	unackedBytes   = 4 << 20
)

// What all streams together have in memory.
const (
	mostStored = 64 << 20 // bytes of messages until they are stored; further ones wait
	mostAcks   = 64 << 20 // bytes of acknowledgements; beyond it a stream is read when it has sent its own
)

// pump is one stream. What it read is stored whether or not the client reads acknowledgements.
type pump[Req, Ack any] struct {
	stream grpc.BidiStreamingServer[Req, Ack]
	s      *Server
	most   int
	handle func([]*Req) []*Ack

	mu      sync.Mutex
	cond    sync.Cond
	pending []*Req // guarded by mu; read, and not handled yet
	size    int    // guarded by mu; bytes of pending
	acks    []*Ack // guarded by mu; not sent yet
	unacked int    // guarded by mu; messages
	bytes   int    // guarded by mu; of messages until they are handled, and of acks
	ended   bool   // guarded by mu; nothing more is read
	handled bool   // guarded by mu; there will be no more acks
	err     error  // guarded by mu; of sending
}

// run reads until the client has sent everything, and returns after the last acknowledgement.
func (p *pump[Req, Ack]) run() error {
	p.cond.L = &p.mu
	var others sync.WaitGroup
	others.Go(p.answer)
	others.Go(p.acknowledge)
	err := p.read()
	p.mu.Lock()
	p.ended = true
	p.cond.Broadcast()
	p.mu.Unlock()
	others.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		err = p.err
	}
	return err
}

func (p *pump[Req, Ack]) read() error {
	for {
		m, n := new(Req), 0
		x := &sized{Message: any(m).(proto.Message), take: func(bytes int) { n = bytes; p.s.stored.take(n) }}
		if err := p.stream.RecvMsg(x); err != nil {
			p.s.stored.give(n)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if n == 0 { // the server is not of Server.GRPC
			x.take(proto.Size(x))
		}
		p.mu.Lock()
		p.pending = append(p.pending, m)
		p.unacked++
		p.size += n
		p.bytes += n
		p.cond.Broadcast()
		for p.err == nil && (p.unacked >= p.most || p.bytes >= unackedBytes || p.unacked > 0 && p.s.acks.Load() >= mostAcks) {
			p.cond.Wait()
		}
		err := p.err
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// answer handles what was read.
func (p *pump[Req, Ack]) answer() {
	var batch []*Req
	for {
		p.mu.Lock()
		for len(p.pending) == 0 && !p.ended {
			p.cond.Wait()
		}
		batch, p.pending = p.pending, batch[:0]
		n := p.size
		p.size = 0
		p.handled = len(batch) == 0
		p.cond.Broadcast()
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		acks := p.handle(batch)
		clear(batch)
		p.s.stored.give(n)
		bytes := sizeOf(acks)
		p.s.acks.Add(int64(bytes))
		p.mu.Lock()
		p.acks = append(p.acks, acks...)
		p.bytes += bytes - n
		p.cond.Broadcast()
		p.mu.Unlock()
	}
}

// acknowledge sends acknowledgements.
func (p *pump[Req, Ack]) acknowledge() {
	for {
		p.mu.Lock()
		for len(p.acks) == 0 && !p.handled {
			p.cond.Wait()
		}
		acks, err := p.acks, p.err
		p.acks = nil
		p.mu.Unlock()
		if len(acks) == 0 {
			return
		}
		n := sizeOf(acks)
		for i := 0; i < len(acks) && err == nil; i++ {
			err = p.stream.Send(acks[i])
		}
		p.s.acks.Add(-int64(n))
		p.mu.Lock()
		p.unacked -= len(acks)
		p.bytes -= n
		p.err = err
		p.cond.Broadcast()
		p.mu.Unlock()
	}
}

func sizeOf[M any](messages []*M) (n int) {
	for _, m := range messages {
		n += proto.Size(any(m).(proto.Message))
	}
	return n
}

// room is a number of bytes that many share.
type room struct {
	most int

	mu   sync.Mutex
	cond sync.Cond
	used int // guarded by mu
}

func newRoom(most int) *room {
	r := &room{most: most}
	r.cond.L = &r.mu
	return r
}

// take waits until there is room, and takes some: more than there is, if it must.
func (r *room) take(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.used >= r.most {
		r.cond.Wait()
	}
	r.used += n
}

func (r *room) give(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= n
	r.cond.Broadcast()
}

// sized is a message that calls take with its size before it is decoded.
type sized struct {
	proto.Message
	take func(bytes int)
}

// codec decodes them.
type codec struct{ encoding.CodecV2 }

// Unmarshal is encoding.CodecV2's.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*sized); ok {
		m.take(data.Len())
	}
	return c.CodecV2.Unmarshal(data, v)
}

// acknowledged is an ID as an acknowledgement has it: with the length of a URL at most, because
// the client may leave it in memory.
func acknowledged(id string) string {
	if len(id) <= frontier.MaxURL {
		return id
	}
	return strings.Clone(strings.ToValidUTF8(id[:frontier.MaxURL], ""))
}

// PutURLs implements the call.
func (s *Server) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	p := pump[pb.URLItem, pb.AckMessage]{stream: stream, s: s, most: unackedURLs, handle: func(items []*pb.URLItem) []*pb.AckMessage {
		puts := make([]put, 0, len(items))
		for _, item := range items {
			if known := item.GetKnown(); known != nil {
				puts = append(puts, put{info: known.GetInfo(), known: true, date: known.GetRefetchableFromDate()})
			} else {
				puts = append(puts, put{info: item.GetDiscovered().GetInfo()})
			}
		}
		s.submit(puts)
		acks := make([]pb.AckMessage, len(items))
		out := make([]*pb.AckMessage, len(items))
		for i, item := range items {
			out[i] = &acks[i]
			out[i].Status, out[i].ID = puts[i].status, acknowledged(cmp.Or(item.GetID(), puts[i].info.GetUrl()))
		}
		return out
	}}
	return p.run()
}

// PutDiscovered implements the call.
func (s *Server) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	p := pump[pb.DiscoveredBatch, pb.BatchAck]{stream: stream, s: s, most: unackedBatches, handle: func(batches []*pb.DiscoveredBatch) []*pb.BatchAck {
		puts := make([]put, 0, len(batches))
		for _, batch := range batches {
			for _, info := range batch.GetItems() {
				puts = append(puts, put{info: info})
			}
		}
		s.submit(puts)
		out, rest := make([]*pb.BatchAck, len(batches)), puts
		for i, batch := range batches {
			out[i] = &pb.BatchAck{ID: acknowledged(batch.GetID()), Statuses: make([]pb.AckMessage_Status, len(batch.GetItems()))}
			for j := range out[i].Statuses {
				out[i].Statuses[j] = rest[j].status
			}
			rest = rest[len(out[i].Statuses):]
		}
		return out
	}}
	return p.run()
}
