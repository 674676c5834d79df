// This file leads streams of PutURLs and PutDiscovered on to the parts. A router keeps nothing of them but
// what waits for an acknowledgement: if a part stops reading, the router stops reading too. What a part has not
// acknowledged when it breaks off is sent again, until another machine has the part.

package urlfrontier

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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
	waiter         = 256       // bytes of one, without the message
)

const againAfter = 200 * time.Millisecond

var errUnread = status.Error(codes.ResourceExhausted, "the acknowledgements were not read, and the last messages were not stored: read while you send, or send less on one stream")

// fan is a client's stream. Its messages go on in lanes, one to each part.
type fan[Req, Ack any] struct {
	r      *Router
	client grpc.BidiStreamingServer[Req, Ack]
	open   opening[Req, Ack]
	fails  func(*Ack) bool
	ctx    context.Context
	end    context.CancelCauseFunc

	waiting atomic.Int64 // bytes
	ways    map[*part]*way[Req, Ack]
	going   sync.WaitGroup // lanes, and what sends for them
	unsaid  sync.WaitGroup // messages without an answer
	over    atomic.Bool    // the client has sent everything
	write   sync.Mutex     // held while the client is sent something
}

// way leads to a part, through one lane after the other.
type way[Req, Ack any] struct {
	sending sync.Mutex
	lane    *lane[Req, Ack] // guarded by sending; nil: none is open

	mu    sync.Mutex
	later []message[Req, Ack] // guarded by mu; a goroutine sends them while there are any
	away  time.Time           // guarded by mu; when the part broke off; zero: it has acknowledged something since
}

// shut says to the part that nothing more comes in the lane.
func (w *way[Req, Ack]) shut() {
	w.sending.Lock()
	defer w.sending.Unlock()
	if w.lane != nil {
		_ = w.lane.CloseSend()
	}
	w.lane = nil
}

// message is on its way to a part. answer gets its acknowledgement, or nil if it may not be stored.
type message[Req, Ack any] struct {
	p      *part
	m      *Req
	came   time.Time
	answer func(*Ack)
}

// lane is a stream to a part, which acknowledges messages in their order.
type lane[Req, Ack any] struct {
	grpc.BidiStreamingClient[Req, Ack]

	mu     sync.Mutex
	waits  []message[Req, Ack] // guarded by mu; those without an acknowledgement
	broken bool                // guarded by mu
}

// await lets a message wait for its acknowledgement. It returns false if none will come.
func (l *lane[Req, Ack]) await(m message[Req, Ack]) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.broken {
		l.waits = append(l.waits, m)
	}
	return !l.broken
}

// next returns the message that waits longest. With an error the lane is broken, and these are all.
func (l *lane[Req, Ack]) next(err error) []message[Req, Ack] {
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

// run leads a client's messages on, and returns after the last acknowledgement. take sends each to its parts; fails
// says whether an acknowledgement wants it sent again.
func run[Req, Ack any](r *Router, client grpc.BidiStreamingServer[Req, Ack], open opening[Req, Ack], fails func(*Ack) bool, take func(*fan[Req, Ack], *Req)) error {
	f := &fan[Req, Ack]{r: r, client: client, open: open, fails: fails, ways: map[*part]*way[Req, Ack]{}}
	for _, p := range r.parts {
		f.ways[p] = &way[Req, Ack]{}
	}
	f.ctx, f.end = context.WithCancelCause(client.Context())
	defer f.end(nil)
	ended := make(chan error, 1)
	go func() { // ends with the call if a part refuses it
		err := f.read(take)
		f.over.Store(true)
		for _, w := range f.ways {
			w.shut()
		}
		f.unsaid.Wait()
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

// message makes one for a part, which waits from now on until answer gets its acknowledgement.
func (f *fan[Req, Ack]) message(p *part, m *Req, answer func(*Ack)) message[Req, Ack] {
	n := int64(waiter + proto.Size(any(m).(proto.Message)))
	f.unsaid.Add(1)
	f.wait(n)
	return message[Req, Ack]{p, m, time.Now(), func(ack *Ack) {
		f.wait(-n)
		answer(ack)
		f.unsaid.Done()
	}}
}

// wait adds to the bytes that wait for acknowledgements.
func (f *fan[Req, Ack]) wait(n int64) {
	f.waiting.Add(n)
	f.r.waiting.Add(n)
}

// send sends a message to its part.
func (f *fan[Req, Ack]) send(m message[Req, Ack]) {
	w := f.ways[m.p]
	w.sending.Lock()
	defer w.sending.Unlock()
	if w.lane == nil || !w.lane.await(m) {
		if w.lane = f.lane(m.p); w.lane == nil || !w.lane.await(m) {
			f.answered(m, nil)
			return
		}
	}
	_ = w.lane.Send(m.m) // the lane gets the error, too
}

// answered passes an acknowledgement on, or has the message sent again.
func (f *fan[Req, Ack]) answered(m message[Req, Ack], ack *Ack) {
	w, stored := f.ways[m.p], ack != nil && !f.fails(ack)
	w.mu.Lock()
	if stored {
		w.away = time.Time{}
	} else if w.away.IsZero() {
		w.away = time.Now()
	}
	again := !stored && time.Since(w.away) < f.r.o.Away && time.Since(m.came) < f.r.o.Away
	w.mu.Unlock()
	if again && f.ctx.Err() == nil && f.r.closing.Err() == nil && f.waiting.Load() < mostWaiting/2 && f.r.waiting.Load() < mostWaitingAll/2 {
		f.later(m)
	} else {
		m.answer(ack)
	}
}

// later lets another goroutine send a message.
func (f *fan[Req, Ack]) later(m message[Req, Ack]) {
	w := f.ways[m.p]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.later = append(w.later, m); len(w.later) > 1 {
		return // one sends
	}
	f.going.Go(func() {
		for done := 0; ; {
			w.mu.Lock()
			w.later = w.later[done:]
			all, pause := w.later, !w.away.IsZero()
			w.mu.Unlock()
			if done = len(all); done == 0 {
				return
			}
			if pause {
				select {
				case <-time.After(againAfter):
				case <-f.ctx.Done():
				case <-f.r.closing.Done():
				}
			}
			for _, m := range all {
				f.send(m)
			}
			if f.over.Load() {
				w.shut()
			}
		}
	})
}

// lane opens a stream to a part, or returns nil.
func (f *fan[Req, Ack]) lane(p *part) *lane[Req, Ack] {
	c, ctx, err := p.client(f.ctx)
	l := &lane[Req, Ack]{}
	if err == nil {
		l.BidiStreamingClient, err = f.open(c, ctx)
	}
	if err != nil {
		f.failed(p, err)
		return nil
	}
	f.going.Go(func() {
		for {
			ack, err := l.Recv()
			if err != nil && !errors.Is(err, io.EOF) {
				f.failed(p, err)
			}
			for _, m := range l.next(err) {
				f.answered(m, ack)
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

// PutURLs implements URLFrontier. A report goes on when all links that came before it are stored, and fails with them:
// StormCrawler sends the links of a page and then its report, and waits for neither.
func (r *Router) PutURLs(stream grpc.BidiStreamingServer[pb.URLItem, pb.AckMessage]) error {
	o := orderOf(stream.Context())
	fails := func(ack *pb.AckMessage) bool { return ack.GetStatus() == pb.AckMessage_FAIL }
	return run(r, stream, pb.URLFrontierClient.PutURLs, fails, func(f *fan[pb.URLItem, pb.AckMessage], item *pb.URLItem) {
		known, info := item.GetKnown(), item.GetDiscovered().GetInfo()
		if known != nil {
			info = known.GetInfo()
		}
		link := turn(0)
		id := acknowledged(cmp.Or(item.GetID(), info.GetUrl()))
		m := f.message(r.home(info.GetKey(), info.GetUrl()), item, func(ack *pb.AckMessage) {
			f.reply(cmp.Or(ack, &pb.AckMessage{ID: id, Status: pb.AckMessage_FAIL}))
			o.done(link, ack != nil && !fails(ack))
		})
		if known == nil {
			link = o.link()
		} else if o.report(func(stored bool) {
			if stored {
				f.later(m)
			} else {
				m.answer(nil)
			}
		}) {
			return
		}
		f.send(m)
	})
}

// PutDiscovered implements URLFrontier. A batch is acknowledged when all parts have acknowledged theirs of it.
func (r *Router) PutDiscovered(stream grpc.BidiStreamingServer[pb.DiscoveredBatch, pb.BatchAck]) error {
	o := orderOf(stream.Context())
	fails := func(ack *pb.BatchAck) bool { return slices.Contains(ack.GetStatuses(), pb.AckMessage_FAIL) }
	return run(r, stream, pb.URLFrontierClient.PutDiscovered, fails, func(f *fan[pb.DiscoveredBatch, pb.BatchAck], batch *pb.DiscoveredBatch) {
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
			return
		}
		link := o.link()
		for p, some := range of {
			f.send(f.message(p, some, func(ack *pb.BatchAck) {
				for j, i := range at[p] {
					if whole.Statuses[i] = pb.AckMessage_FAIL; ack != nil {
						whole.Statuses[i] = ack.GetStatuses()[j]
					}
				}
				if left.Add(-1) == 0 {
					f.reply(whole)
					o.done(link, !fails(whole))
				}
			}))
		}
	})
}
