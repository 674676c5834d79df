// Package urlfrontier serves a frontier over the URLFrontier gRPC API, for crawlers such as
// StormCrawler.
//
//	f, err := frontier.Open(ctx, urlfrontier.Frontier(frontier.Options{Spill: db}))
//	...
//	svc, err := serve.New(f, serve.Options{})
//	...
//	s, err := urlfrontier.New(ctx, svc, urlfrontier.Options{})
//	...
//	err = s.GRPC(urlfrontier.GRPCOptions{}).Serve(listener)
//
// Keys of queues are hosts to which politeness is owed. URLs that are completed stay in the
// frontier, scheduled for a time that never comes, so that they remain known and are listed.
// docs/urlfrontier.md has the calls and what differs from the reference server.
package urlfrontier
