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
// A queue's key is the host that politeness applies to (Entry.Host). Completed URLs are finished and kept
// (Options.Keep), so listings show them. Clients decide when a URL is fetched again, so the frontier has
// no Scheduler. A [Router] answers for several such servers, each with a part of the hosts.
// docs/urlfrontier.md lists the calls and the differences from the reference server.
package urlfrontier
