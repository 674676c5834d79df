// Package serve serves one frontier to crawlers in any language: over HTTP with JSON, and
// to other protocols, which build on Service.
//
//	f, err := frontier.Open(ctx, serve.Frontier(frontier.Options{Spill: db}))
//	...
//	s, err := serve.New(f, serve.Options{Tokens: tokens})
//	defer s.Close()
//	err = s.HTTP().Serve(listener)
//
// A Service adds to the frontier what its clients need who are elsewhere: names of crawls,
// leases by their ids, metadata as names with values, repeated requests that change nothing,
// limits of what requests may use, and roles. docs/http.md describes the requests, and
// openapi.json beside this file their form.
package serve
