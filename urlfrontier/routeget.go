// This file takes URLs from the parts, and lists what they have: one part after the other.

package urlfrontier

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/seed-7440039f/frontier/serve"
	"github.com/seed-7440039f/frontier/urlfrontier/pb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// taking is a GetURLs.
type taking struct {
	r      *Router
	p      *pb.GetParams
	stream grpc.ServerStreamingServer[pb.URLInfo]

	queues uint32    // sent
	key    string    // of the queue sent last
	next   time.Time // when a part may have URLs; zero: time alone changes nothing
}

// errLapsed ends a GetURLs: leases that the client would get may have ended.
var errLapsed = errors.New("the leases may have ended")

// GetURLs implements URLFrontier. If a part breaks off, the others are asked; what it has handed out and the
// client has not got comes again when its lease has ended.
func (r *Router) GetURLs(p *pb.GetParams, stream grpc.ServerStreamingServer[pb.URLInfo]) error {
	x := &taking{r: r, p: p, stream: stream}
	for deadline := time.Now().Add(r.o.Wait); ; {
		x.next = time.Time{}
		err := x.inTurn(r.inTurn(p.GetKey()))
		if errors.Is(err, errLapsed) {
			return nil
		}
		if err != nil || x.queues > 0 || x.next.IsZero() || x.next.After(deadline) {
			return err
		}
		select {
		case <-time.After(time.Until(x.next)):
		case <-stream.Context().Done():
			return nil
		case <-r.closing.Done():
			return nil
		}
	}
}

// inTurn asks parts until the client has what it wants. The error is the last part's if none has answered.
func (x *taking) inTurn(parts []*part) (err error) {
	most, began, heard := x.p.GetMaxQueues(), time.Now(), false
	for _, p := range parts {
		if x.queues > 0 && (x.queues >= most && most > 0 || time.Since(began) >= holdOf(x.p)) {
			return nil
		}
		q := proto.CloneOf(x.p)
		if most > 0 {
			q.MaxQueues = most - x.queues
		}
		err = x.take(p, q)
		if errors.Is(err, errLapsed) || refused(err) || x.stream.Context().Err() != nil {
			return err
		}
		heard = heard || err == nil
	}
	if heard {
		return nil
	}
	return err
}

// take passes on what a part hands out, until leases of the part may end.
func (x *taking) take(p *part, q *pb.GetParams) error {
	ctx, cancel := context.WithCancel(x.stream.Context())
	defer cancel()
	asked := time.Now()
	from, err := ask(ctx, x.r, p, pb.URLFrontierClient.GetURLs, q)
	if err != nil {
		return err
	}
	head, err := from.Header()
	if err != nil {
		return x.r.failed(ctx, p, err)
	}
	until := asked.Add(cmp.Or(durationIn(head, holdHeader), holdOf(q)))
	ended := make(chan error, 1)
	go func() { ended <- x.copy(from) }() // ends with the call if the client does not read
	select {
	case err = <-ended:
	case <-time.After(time.Until(until)):
		return errLapsed
	}
	if err != nil {
		return x.r.failed(ctx, p, err)
	}
	if wait := durationIn(from.Trailer(), nextTrailer); wait > 0 && (x.next.IsZero() || time.Now().Add(wait).Before(x.next)) {
		x.next = time.Now().Add(wait)
	}
	return nil
}

// copy sends a part's URLs to the client.
func (x *taking) copy(from grpc.ServerStreamingClient[pb.URLInfo]) error {
	for {
		u, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if x.queues == 0 || u.GetKey() != x.key {
			x.key = u.GetKey()
			x.queues++
		}
		if err := x.stream.Send(u); err != nil {
			return err
		}
	}
}

// durationIn returns a duration of metadata, or 0.
func durationIn(md metadata.MD, name string) (d time.Duration) {
	for _, v := range md.Get(name) {
		d, _ = time.ParseDuration(v)
	}
	return d
}

// startIn returns what a part has left of the start of a page.
func startIn(md metadata.MD) uint32 {
	for _, v := range md.Get(leftTrailer) {
		n, _ := strconv.ParseUint(v, 10, 32)
		return uint32(n)
	}
	return 0
}

// ListURLs implements URLFrontier.
func (r *Router) ListURLs(p *pb.ListUrlParams, stream grpc.ServerStreamingServer[pb.URLItem]) error {
	q := proto.CloneOf(p)
	q.Size = cmp.Or(q.GetSize(), pageSize)
	for _, p := range r.of(q.GetKey()) {
		from, err := ask(stream.Context(), r, p, pb.URLFrontierClient.ListURLs, q)
		if err != nil {
			return err
		}
		for err == nil {
			var item *pb.URLItem
			if item, err = from.Recv(); err == nil {
				q.Size--
				err = stream.Send(item)
			}
		}
		if !errors.Is(err, io.EOF) {
			return r.failed(stream.Context(), p, err)
		}
		if q.Start = startIn(from.Trailer()); q.GetSize() == 0 {
			break
		}
	}
	return nil
}

// ListQueues implements URLFrontier.
func (r *Router) ListQueues(ctx context.Context, p *pb.Pagination) (*pb.QueueList, error) {
	out := &pb.QueueList{Start: p.GetStart(), CrawlID: serve.Normal(p.GetCrawlID())}
	q := proto.CloneOf(p)
	q.Size = cmp.Or(q.GetSize(), pageSize)
	for _, p := range r.parts {
		var end metadata.MD
		page, err := ask(ctx, r, p, pb.URLFrontierClient.ListQueues, q, grpc.Trailer(&end))
		if err != nil {
			return nil, err
		}
		out.Values = append(out.Values, page.GetValues()...)
		if q.Start, q.Size = startIn(end), q.GetSize()-page.GetSize(); q.GetSize() == 0 {
			break
		}
	}
	out.Size = uint32(len(out.Values))
	return out, nil
}
