// This file moves the messages of PutURLs and PutDiscovered: a stream is read while what came
// before is committed and acknowledged, up to a number of messages.

package urlfrontier

import (
	"errors"
	"io"
	"sync"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// How many messages of a stream are read without being acknowledged, and about how many bytes.
const (
	unackedURLs    = 1024
	unackedBatches = 16
	unackedBytes   = 4 << 20
)

// pump is one stream.
type pump[Req, Ack any] struct {
	stream grpc.BidiStreamingServer[Req, Ack]
	most   int
	handle func([]*Req) []*Ack

	mu      sync.Mutex
	cond    sync.Cond
	pending []*Req // guarded by mu; read, and not handled yet
	unacked int    // guarded by mu; messages
	bytes   int    // guarded by mu; of pending, and of what is being handled
	ended   bool   // guarded by mu; nothing more is read
	err     error  // guarded by mu; of sending
}

// run reads until the client has sent everything, and returns after the last acknowledgement.
func (p *pump[Req, Ack]) run() error {
	p.cond.L = &p.mu
	answered := make(chan struct{})
	go func() { defer close(answered); p.answer() }()
	err := p.read()
	p.mu.Lock()
	p.ended = true
	p.cond.Broadcast()
	p.mu.Unlock()
	<-answered
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		err = p.err
	}
	return err
}

func (p *pump[Req, Ack]) read() error {
	for {
		m, err := p.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.pending = append(p.pending, m)
		p.unacked++
		p.bytes += proto.Size(any(m).(proto.Message))
		p.cond.Broadcast()
		for (p.unacked >= p.most || p.bytes >= unackedBytes) && p.err == nil {
			p.cond.Wait()
		}
		err = p.err
		p.mu.Unlock()
		if err != nil {
			return err
		}
	}
}

// answer handles and acknowledges what was read.
func (p *pump[Req, Ack]) answer() {
	var batch []*Req
	for {
		p.mu.Lock()
		for len(p.pending) == 0 && !p.ended {
			p.cond.Wait()
		}
		batch, p.pending = p.pending, batch[:0]
		bytes := p.bytes
		failed := p.err != nil
		p.mu.Unlock()
		if len(batch) == 0 {
			return
		}
		acks := p.handle(batch)
		var err error
		for _, ack := range acks {
			if failed || err != nil {
				break
			}
			err = p.stream.Send(ack)
		}
		clear(batch)
		p.mu.Lock()
		p.unacked -= len(acks)
		p.bytes -= bytes
		if p.err == nil {
			p.err = err
		}
		p.cond.Broadcast()
		p.mu.Unlock()
	}
}

// PutURLs implements the call.
func (s *Server) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	s.listings.forget(stream.Context())
	var puts []put
	p := pump[pb.URLItem, pb.AckMessage]{stream: stream, most: unackedURLs, handle: func(items []*pb.URLItem) []*pb.AckMessage {
		puts = puts[:0]
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
			if out[i].Status, out[i].ID = puts[i].status, item.GetID(); out[i].ID == "" {
				out[i].ID = puts[i].info.GetUrl()
			}
		}
		clear(puts)
		return out
	}}
	return p.run()
}

// PutDiscovered implements the call.
func (s *Server) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	s.listings.forget(stream.Context())
	var puts []put
	p := pump[pb.DiscoveredBatch, pb.BatchAck]{stream: stream, most: unackedBatches, handle: func(batches []*pb.DiscoveredBatch) []*pb.BatchAck {
		puts = puts[:0]
		for _, batch := range batches {
			for _, info := range batch.GetItems() {
				puts = append(puts, put{info: info})
			}
		}
		s.submit(puts)
		out, rest := make([]*pb.BatchAck, len(batches)), puts
		for i, batch := range batches {
			out[i] = &pb.BatchAck{ID: batch.GetID(), Statuses: make([]pb.AckMessage_Status, len(batch.GetItems()))}
			for j := range out[i].Statuses {
				out[i].Statuses[j] = rest[j].status
			}
			rest = rest[len(out[i].Statuses):]
		}
		clear(puts)
		return out
	}}
	return p.run()
}
