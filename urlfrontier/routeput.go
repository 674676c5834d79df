// This file leads streams of PutURLs and PutDiscovered on to the parts. A router keeps nothing of them but
// what waits for an acknowledgement: if a part stops reading, the router stops reading too.

package urlfrontier

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Memory of what waits for acknowledgements. Beyond it, later messages are not stored. Clients that read stay
// far below: parts read no further than they store.
const (
	mostWaiting    = 64 << 20  // bytes of a stream
	mostWaitingAll = 256 << 20 // bytes of all streams
	waiter         = 256       // bytes of one, without its ID
)

var errUnread = status.Error(codes.ResourceExhausted, "the acknowledgements were not read, and the last messages were not stored: read while you send, or send less on one stream")

// fan is a client's stream. Its messages go on in lanes, one to each part.
type fan[Req, Ack any] struct {
	r      *Router
	client grpc.BidiStreamingServer[Req, Ack]
	open   opening[Req, Ack]
	ctx    context.Context
	end    context.CancelCauseFunc

	waiting atomic.Int64              // bytes
	lanes   map[*part]*lane[Req, Ack] // those that are open
	going   sync.WaitGroup            // lanes
	write   sync.Mutex                // held while the client is sent something
}

// lane is a stream to a part, which acknowledges messages in their order.
type lane[Req, Ack any] struct {
	grpc.BidiStreamingClient[Req, Ack]

	mu     sync.Mutex
	waits  []func(*Ack) // guarded by mu; for each message without an acknowledgement
	broken bool         // guarded by mu
}

// await lets a function wait for an acknowledgement. It returns false if none will come.
func (l *lane[Req, Ack]) await(then func(*Ack)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.broken {
		l.waits = append(l.waits, then)
	}
	return !l.broken
}

// next returns the n functions that wait longest. With an error the lane is broken, and these are all.
func (l *lane[Req, Ack]) next(err error) []func(*Ack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(1, len(l.waits))
	if err != nil {
		l.broken, n = true, len(l.waits)
	}
	all := l.waits[:n]
	l.waits = l.waits[n:]
	return all
}

// opening is how a stream to a part begins.
type opening[Req, Ack any] func(pb.URLFrontierClient, context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[Req, Ack], error)

// run leads a client's messages on. take sends each to its parts. It returns after the last acknowledgement.
func run[Req, Ack any](r *Router, client grpc.BidiStreamingServer[Req, Ack], open opening[Req, Ack], take func(*fan[Req, Ack], *Req)) error {
	f := &fan[Req, Ack]{r: r, client: client, open: open, lanes: map[*part]*lane[Req, Ack]{}}
	f.ctx, f.end = context.WithCancelCause(client.Context())
	defer f.end(nil)
	ended := make(chan error, 1)
	go func() { // ends with the call if a part refuses it
		err := f.read(take)
		for _, l := range f.lanes {
			_ = l.CloseSend()
		}
		f.going.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		return cmp.Or(context.Cause(f.ctx), err)
	case <-f.ctx.Done():
		return context.Cause(f.ctx)
	}
}

// read reads until the client has sent everything.
func (f *fan[Req, Ack]) read(take func(*fan[Req, Ack], *Req)) (unread error) {
	for {
		m := new(Req)
		n, err := f.r.passing.receive(f.client, any(m).(proto.Message))
		if errors.Is(err, io.EOF) {
			return unread
		}
		if err != nil {
			return err
		}
		if f.waiting.Load() > mostWaiting || f.r.waiting.Load() > mostWaitingAll {
			unread = errUnread
		}
		if unread == nil {
			take(f, m)
		}
		f.r.passing.give(n)
	}
}

// send sends a message to a part. answer gets its acknowledgement, or nil if the message may not be stored.
// Until then n bytes wait.
func (f *fan[Req, Ack]) send(p *part, m *Req, n int, answer func(*Ack)) {
	f.wait(n)
	then := func(ack *Ack) {
		f.wait(-n)
		answer(ack)
	}
	l := f.lanes[p]
	if l == nil || !l.await(then) {
		if l = f.lane(p); l == nil || !l.await(then) {
			then(nil)
			return
		}
	}
	_ = l.Send(m) // the lane gets the error, too
}

// wait adds to the bytes that wait for acknowledgements.
func (f *fan[Req, Ack]) wait(n int) {
	f.waiting.Add(int64(n))
	f.r.waiting.Add(int64(n))
}

// lane opens a stream to a part, or returns nil.
func (f *fan[Req, Ack]) lane(p *part) *lane[Req, Ack] {
	delete(f.lanes, p)
	c, ctx, err := p.client(f.ctx)
	l := &lane[Req, Ack]{}
	if err == nil {
		l.BidiStreamingClient, err = f.open(c, ctx)
	}
	if err != nil {
		f.failed(p, err)
		return nil
	}
	f.lanes[p] = l
	f.going.Go(func() {
		for {
			ack, err := l.Recv()
			if err != nil && !errors.Is(err, io.EOF) {
				f.failed(p, err)
			}
			for _, then := range l.next(err) {
				then(ack)
			}
			if err != nil {
				return
			}
		}
	})
	return l
}

// failed ends the stream if a part refuses it. Otherwise the client may send again what was not stored.
func (f *fan[Req, Ack]) failed(p *part, err error) {
	if err = f.r.failed(f.ctx, p, err); refused(err) {
		f.end(err)
	}
}

// reply sends an acknowledgement, unless the stream ends with an error.
func (f *fan[Req, Ack]) reply(ack *Ack) {
	f.write.Lock()
	defer f.write.Unlock()
	if f.ctx.Err() != nil {
		return
	}
	if err := f.client.Send(ack); err != nil {
		f.end(err)
	}
}

// PutURLs implements URLFrontier.
func (r *Router) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	return run(r, stream, pb.URLFrontierClient.PutURLs, func(f *fan[pb.URLItem, pb.AckMessage], item *pb.URLItem) {
		info := item.GetDiscovered().GetInfo()
		if known := item.GetKnown(); known != nil {
			info = known.GetInfo()
		}
		id := acknowledged(cmp.Or(item.GetID(), info.GetUrl()))
		f.send(r.home(info.GetKey(), info.GetUrl()), item, waiter+len(id), func(ack *pb.AckMessage) {
			f.reply(cmp.Or(ack, &pb.AckMessage{ID: id, Status: pb.AckMessage_FAIL}))
		})
	})
}

// PutDiscovered implements URLFrontier. A batch is acknowledged when all parts have acknowledged theirs of it.
func (r *Router) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	return run(r, stream, pb.URLFrontierClient.PutDiscovered, func(f *fan[pb.DiscoveredBatch, pb.BatchAck], batch *pb.DiscoveredBatch) {
		of, at := map[*part]*pb.DiscoveredBatch{}, map[*part][]int{}
		for i, info := range batch.GetItems() {
			p := r.home(info.GetKey(), info.GetUrl())
			if of[p] == nil {
				of[p] = &pb.DiscoveredBatch{}
			}
			of[p].Items, at[p] = append(of[p].Items, info), append(at[p], i)
		}
		whole := &pb.BatchAck{ID: acknowledged(batch.GetID()), Statuses: make([]pb.AckMessage_Status, len(batch.GetItems()))}
		var left atomic.Int32
		if left.Add(int32(len(of))); len(of) == 0 {
			f.reply(whole)
		}
		for p, some := range of {
			f.send(p, some, waiter+len(whole.GetID())+16*len(at[p]), func(ack *pb.BatchAck) {
				for j, i := range at[p] {
					if whole.Statuses[i] = pb.AckMessage_FAIL; ack != nil {
						whole.Statuses[i] = ack.GetStatuses()[j]
					}
				}
				if left.Add(-1) == 0 {
					f.reply(whole)
				}
			})
		}
	})
}
