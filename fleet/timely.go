package fleet

import (
	"context"
	"time"
)

// callTime is how long one call of the engine may take, and Read until its next record.
const callTime = 10 * time.Second

// timely is an engine whose calls end: one that hangs would keep its caller for ever.
type timely struct{ Engine }

func (e timely) Append(ctx context.Context, partition int, last uint64, record []byte) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return e.Engine.Append(ctx, partition, last, record)
}

func (e timely) Last(ctx context.Context, partition int) (uint64, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return e.Engine.Last(ctx, partition)
}

func (e timely) Read(ctx context.Context, partition int, after, through uint64, fn func(uint64, []byte) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stuck := time.AfterFunc(callTime, cancel)
	defer stuck.Stop()
	return e.Engine.Read(ctx, partition, after, through, func(number uint64, record []byte) error {
		defer stuck.Reset(callTime)
		return fn(number, record)
	})
}

func (e timely) Purge(ctx context.Context, partition int, through uint64) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return e.Engine.Purge(ctx, partition, through)
}

func (e timely) Get(ctx context.Context, key string) (Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return e.Engine.Get(ctx, key)
}

func (e timely) Put(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return e.Engine.Put(ctx, key, value, revision)
}
