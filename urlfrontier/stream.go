// This file runs the streams of PutURLs and PutDiscovered. A stream is read while earlier messages are
// being committed, up to a number of messages, and while acknowledgements wait for the client, up to a
// number of bytes. So a client may send everything before it reads.

package urlfrontier

import (
	"cmp"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-7440039f/frontier"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// How many messages of a stream, and about how many bytes, are read ahead of storing.
const (
	unstoredURLs    = 1024
	unstoredBatches = 16
	unstoredBytes   = 4 << 20
)

// mostUnread is about how many bytes of acknowledgements a stream holds for its client. Beyond it the
// stream waits. If the client reads none for unreadWait, later messages are not stored.
const (
	mostUnread = 16 << 20
	unreadWait = 10 * time.Second
)

// Memory of all streams together.
const (
	mostStored = 64 << 20 // bytes of messages not stored yet; more wait
	mostAcks   = 64 << 20 // bytes of acknowledgements; beyond it a stream with any waits as with mostUnread
)

// pump is one stream. It stores what it has read, even if the client does not read acknowledgements.
type pump[Req, Ack any] struct {
	stream grpc.BidiStreamingServer[Req, Ack]
	s      *Server
	most   int
	weight int // bytes of memory per byte of an acknowledgement
	handle func([]*Req) []*Ack

	mu       sync.Mutex
	cond     sync.Cond
	pending  []*Req // guarded by mu; read, not yet handled
	size     int    // guarded by mu; bytes of pending
	acks     []*Ack // guarded by mu; not yet sent
	unstored int    // guarded by mu; messages
	bytes    int    // guarded by mu; of messages not yet stored
	unread   int    // guarded by mu; bytes of acks and of those being sent
	ended    bool   // guarded by mu; the client has sent everything
	handled  bool   // guarded by mu; no more acks follow
	err      error  // guarded by mu; from sending

	moved   atomic.Int64 // when the client last read an acknowledgement, in nanoseconds
	refused int          // messages not stored
}

// run reads until the client has sent everything. It returns after the last acknowledgement.
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
	if err == nil && p.refused > 0 {
		err = status.Errorf(codes.ResourceExhausted, "the acknowledgements were not read: the last %d messages were not stored, and have none; read while you send, or send less on one stream", p.refused)
	}
	return err
}

// stuckLocked reports whether too many acknowledgements wait for the client.
func (p *pump[Req, Ack]) stuckLocked() bool {
	return p.unread >= p.s.mostUnread || p.unread > 0 && p.s.acks.Load() >= mostAcks
}

// awaitRoomLocked waits until another message may be read. It returns false if the client does not read.
func (p *pump[Req, Ack]) awaitRoomLocked() bool {
	began := time.Now()
	for p.err == nil && (p.unstored >= p.most || p.bytes >= unstoredBytes || p.stuckLocked()) {
		left := p.s.unreadWait - min(time.Since(began), time.Since(time.Unix(0, p.moved.Load())))
		if stuck := p.stuckLocked(); stuck && left <= 0 {
			return false
		} else if !stuck {
			p.cond.Wait()
			continue
		}
		t := time.AfterFunc(left, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.cond.Broadcast()
		})
		p.cond.Wait()
		t.Stop()
	}
	return true
}

func (p *pump[Req, Ack]) read() error {
	for {
		m := new(Req)
		n, err := p.s.stored.receive(p.stream, any(m).(proto.Message))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.mu.Lock()
		if p.refused > 0 || !p.awaitRoomLocked() { // the client learns it at the end of its stream
			p.refused++
			p.mu.Unlock()
			p.s.stored.give(n)
			continue
		}
		p.pending = append(p.pending, m)
		p.unstored++
		p.size += n
		p.bytes += n
		p.cond.Broadcast()
		err = p.err
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// answer handles the messages read.
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
		acks, messages := p.handle(batch), len(batch)
		clear(batch)
		p.s.stored.give(n)
		bytes := p.sizeOf(acks)
		p.s.acks.Add(int64(bytes))
		p.mu.Lock()
		p.acks = append(p.acks, acks...)
		p.unstored -= messages
		p.bytes -= n
		p.unread += bytes
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
		acks, err := p.acks[:min(len(p.acks), ackedAtOnce)], p.err
		if p.acks = p.acks[len(acks):]; len(p.acks) == 0 {
			p.acks = nil
		}
		p.mu.Unlock()
		if len(acks) == 0 {
			return
		}
		n := p.sizeOf(acks)
		for i := 0; i < len(acks) && err == nil; i++ {
			err = p.stream.Send(acks[i])
			p.moved.Store(time.Now().UnixNano())
		}
		clear(acks)
		p.s.acks.Add(-int64(n))
		p.mu.Lock()
		p.unread -= n
		p.err = err
		p.cond.Broadcast()
		p.mu.Unlock()
	}
}

// ackedAtOnce is how many acknowledgements are sent before their room is released.
const ackedAtOnce = 256

// sizeOf estimates the memory of acknowledgements.
func (p *pump[Req, Ack]) sizeOf(acks []*Ack) (n int) {
	for _, m := range acks {
		n += 128 + p.weight*proto.Size(any(m).(proto.Message))
	}
	return n
}

// room is a number of bytes shared by many streams.
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

// take waits until there is any room, and then takes n bytes, even beyond the limit.
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

// receive receives a message, and takes its bytes.
func (r *room) receive(stream grpc.ServerStream, m proto.Message) (n int, err error) {
	x := &sized{Message: m, take: func(bytes int) { n = bytes; r.take(n) }}
	if err := stream.RecvMsg(x); err != nil {
		r.give(n)
		return 0, err
	}
	if n == 0 { // the server was not made by this package
		x.take(proto.Size(x))
	}
	return n, nil
}

// sized is a message whose take is called with its size before it is decoded.
type sized struct {
	proto.Message
	take func(bytes int)
}

// codec decodes sized messages.
type codec struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*sized); ok {
		m.take(data.Len())
	}
	return c.CodecV2.Unmarshal(data, v)
}

// acknowledged shortens an ID to the length of a URL: acknowledgements stay in memory while the client
// does not read.
func acknowledged(id string) string {
	if len(id) <= frontier.MaxURL {
		return id
	}
	return strings.Clone(strings.ToValidUTF8(id[:frontier.MaxURL], ""))
}

// PutURLs implements URLFrontier.
func (s *Server) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	p := pump[pb.URLItem, pb.AckMessage]{stream: stream, s: s, most: unstoredURLs, weight: 1, handle: func(items []*pb.URLItem) []*pb.AckMessage {
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

// PutDiscovered implements URLFrontier.
func (s *Server) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	p := pump[pb.DiscoveredBatch, pb.BatchAck]{stream: stream, s: s, most: unstoredBatches, weight: 4, handle: func(batches []*pb.DiscoveredBatch) []*pb.BatchAck {
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
