// Package urlfrontier serves a frontier over the URLFrontier gRPC API, for crawlers such as
// StormCrawler.
//
//	f, err := frontier.Open(ctx, urlfrontier.Frontier(frontier.Options{Spill: db}))
//	...
//	svc, err := serve.New(f, serve.Options{CheckValue: urlfrontier.CheckValue})
//	...
//	s, err := urlfrontier.New(ctx, svc, urlfrontier.Options{})
//	...
//	err = s.GRPC(urlfrontier.GRPCOptions{}).Serve(listener)
//
// Keys of queues are hosts to which politeness is owed (Entry.Host). URLs that are completed are
// finished and kept (Options.Keep), so they are listed. Clients say when URLs come again, so the
// frontier has no Scheduler.
// docs/urlfrontier.md has the calls and what differs from the reference server.
package urlfrontier
