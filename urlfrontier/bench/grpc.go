package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/seed-7440039f/frontier/urlfrontier/pb"
)

const (
	batch   = 1000 // URLs per DiscoveredBatch
	batches = 16   // batches unacknowledged on a stream
	unacked = 1000 // messages unacknowledged on a PutURLs stream
	patient = time.Minute
)

type service struct {
	conn *grpc.ClientConn
	pb.URLFrontierClient
}

// dial waits until the server answers.
func dial(ctx context.Context, address string) (*service, error) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		return nil, err
	}
	f := &service{conn, pb.NewURLFrontierClient(conn)}
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	if _, err := f.GetActive(ctx, &pb.Local{}); err != nil {
		conn.Close()
		return nil, fmt.Errorf("no answer from %s: %w", address, err)
	}
	return f, nil
}

func (f *service) close() { f.conn.Close() }

// page is URL i of a set that is spread over hosts.
func page(set string, i, hosts int) *pb.URLInfo {
	host := fmt.Sprintf("host%d.example", i%hosts)
	return &pb.URLInfo{Url: fmt.Sprintf("http://%s/%s/%d.html", host, set, i), Key: host, CrawlID: "DEFAULT"}
}

// discovered adds URLs in batches, several at once.
func (b *bench) discovered(ctx context.Context) error {
	name := fmt.Sprintf("PutDiscovered, batches of %d, %d URLs", batch, b.urls)
	return b.timed(name, func(*[]time.Duration) (int, error) {
		return b.urls, each(b.streams, func(stream int) error {
			from, to := b.urls*stream/b.streams, b.urls*(stream+1)/b.streams
			return b.frontier.discover(ctx, from, to, func(i int) *pb.URLInfo { return page("discovered", i, b.hosts) })
		})
	})
}

func (f *service) discover(ctx context.Context, from, to int, url func(int) *pb.URLInfo) error {
	s, err := sending(ctx, f.PutDiscovered, batches, func(ack *pb.BatchAck) error {
		for _, status := range ack.Statuses {
			if status != pb.AckMessage_OK {
				return fmt.Errorf("batch %s: a new URL was answered %s", ack.ID, status)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := from; i < to && err == nil; i += batch {
		items := make([]*pb.URLInfo, 0, batch)
		for j := i; j < min(i+batch, to); j++ {
			items = append(items, url(j))
		}
		err = s.send(&pb.DiscoveredBatch{ID: fmt.Sprint(i), Items: items})
	}
	return s.end(err)
}

// finished joins the errors of a stream's sender and reader.
func finished(sent, read error) error {
	if errors.Is(read, io.EOF) {
		read = nil
	}
	if read != nil {
		return read // the cause; it made the sender fail, too
	}
	return sent
}

// put sends new URLs on one stream, one per message.
func (b *bench) put(ctx context.Context) error {
	name := fmt.Sprintf("PutURLs, one message each, %d URLs", b.single)
	return b.timed(name, func(*[]time.Duration) (int, error) {
		p, err := b.frontier.putter(ctx)
		if err != nil {
			return 0, err
		}
		for i := range b.single {
			if err := p.send(&pb.URLItem{ID: fmt.Sprint(i), Item: &pb.URLItem_Discovered{
				Discovered: &pb.DiscoveredURLItem{Info: page("single", i, b.hosts)}}}); err != nil {
				return 0, p.end(err)
			}
		}
		return b.single, p.end(nil)
	})
}

func (f *service) putter(ctx context.Context) (*sender[pb.URLItem, pb.AckMessage], error) {
	return sending(ctx, f.PutURLs, unacked, func(ack *pb.AckMessage) error {
		if ack.Status != pb.AckMessage_OK {
			return fmt.Errorf("URL %s was answered %s", ack.ID, ack.Status)
		}
		return nil
	})
}

// sender sends on a stream and reads its acknowledgements.
type sender[M, A any] struct {
	stream grpc.BidiStreamingClient[M, A]
	room   chan struct{}
	read   chan error
	ctx    context.Context
	cancel context.CancelFunc
	acked  atomic.Int64
}

// sending opens a stream on which a number of messages may be unacknowledged. judge returns an error for an
// acknowledgement that ends it.
func sending[M, A any](ctx context.Context, open func(context.Context, ...grpc.CallOption) (grpc.BidiStreamingClient[M, A], error), most int, judge func(*A) error) (*sender[M, A], error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := open(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &sender[M, A]{stream: stream, room: make(chan struct{}, most), read: make(chan error, 1), ctx: ctx, cancel: cancel}
	go func() {
		defer cancel() // wakes a sender that waits for room
		for {
			ack, err := stream.Recv()
			if err == nil {
				err = judge(ack)
			}
			if err != nil {
				s.read <- err
				return
			}
			s.acked.Add(1)
			<-s.room
		}
	}()
	return s, nil
}

func (s *sender[M, A]) send(m *M) error {
	select {
	case s.room <- struct{}{}:
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
	return s.stream.Send(m)
}

func (s *sender[M, A]) end(err error) error {
	defer s.cancel()
	if err == nil {
		err = s.stream.CloseSend()
	} else {
		s.cancel()
	}
	return finished(err, <-s.read)
}

// give lets clients get URLs and return them as completed.
func (b *bench) give(ctx context.Context) error {
	if _, err := b.frontier.SetDelay(ctx, &pb.QueueDelayParams{}); err != nil {
		return err
	}
	return b.timed(fmt.Sprintf("GetURLs + PutURLs known, %d clients", b.clients), func(*[]time.Duration) (int, error) {
		var total atomic.Int64
		until := time.Now().Add(b.span)
		err := each(b.clients, func(int) error {
			p, err := b.frontier.putter(ctx)
			if err != nil {
				return err
			}
			for time.Now().Before(until) && err == nil {
				err = b.frontier.get(ctx, &pb.GetParams{MaxUrlsPerQueue: 10, MaxQueues: 100, DelayRequestable: 60}, func(u *pb.URLInfo) error {
					return p.send(&pb.URLItem{ID: u.Url, Item: &pb.URLItem_Known{Known: &pb.KnownURLItem{Info: u}}})
				})
			}
			err = p.end(err)
			total.Add(p.acked.Load())
			return err
		})
		return int(total.Load()), err
	})
}

func (f *service) get(ctx context.Context, params *pb.GetParams, each func(*pb.URLInfo) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s, err := f.GetURLs(ctx, params)
	if err != nil {
		return err
	}
	for {
		u, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(u); err != nil {
			return err
		}
	}
}

// manyQueues asks for one URL of one queue among many queues.
func (b *bench) manyQueues(ctx context.Context) error {
	err := b.timed(fmt.Sprintf("PutDiscovered of %d queues", b.queues), func(*[]time.Duration) (int, error) {
		return b.queues, b.frontier.discover(ctx, 0, b.queues, func(i int) *pb.URLInfo {
			host := fmt.Sprintf("many%d.example", i)
			return &pb.URLInfo{Url: "http://" + host + "/", Key: host, CrawlID: "DEFAULT"}
		})
	})
	if err != nil {
		return err
	}
	return b.timed(fmt.Sprintf("GetURLs of 1, %d queues", b.queues), func(laps *[]time.Duration) (int, error) {
		for range b.calls {
			got, began := 0, time.Now()
			err := b.frontier.get(ctx, &pb.GetParams{MaxUrlsPerQueue: 1, MaxQueues: 1, DelayRequestable: 600}, func(*pb.URLInfo) error {
				got++
				return nil
			})
			if err != nil {
				return 0, err
			}
			if got == 0 {
				return 0, errors.New("GetURLs gave nothing although queues wait")
			}
			*laps = append(*laps, time.Since(began))
		}
		return b.calls, nil
	})
}

// each runs n copies of work concurrently.
func each(n int, work func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = work(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
