package inspect

import (
	"context"

	"github.com/seed-7440039f/frontier/internal/record"
	"github.com/seed-7440039f/frontier/internal/view"
)

// WalkURLs lists what waits of a host, with steps so short, and calls between
// without the lock after each of them.
func (v *Inspector) WalkURLs(host string, steps int, between func()) (urls []string, err error) {
	l := listing{f: v.f, ctx: context.Background()}
	v.f.Lock()
	w := view.Begin(v.f.Core(), host, 0)
	for v.f.Core().Fifo.Step(w.Walk, steps) {
		v.f.Unlock()
		between()
		v.f.Lock()
	}
	v.f.Core().EndWalk(w.Walk)
	v.f.Unlock()
	between()
	if err := w.Read(v.f.Ranges(), l.load); err != nil {
		return nil, err
	}
	w.Cut()
	between()
	if err := l.drop(w); err != nil {
		return nil, err
	}
	for _, x := range w.Items {
		b, err := record.Decode(x.Body)
		if err != nil {
			return nil, err
		}
		urls = append(urls, string(b.URL))
	}
	return urls, nil
}
