// Package serve serves one frontier to crawlers in any language: over HTTP with JSON, and
// to other protocols, which build on Service.
//
//	f, err := frontier.Open(ctx, serve.Frontier(frontier.Options{Spill: db}))
//	...
//	s, err := serve.New(f, serve.Options{Tokens: tokens})
//	defer s.Close()
//	err = s.HTTP().Serve(listener)
//
// A Service adds what remote clients need: crawls by name, leases by ID, metadata as names and values,
// idempotent requests, limits on requests, and roles. docs/http.md describes the requests, and
// openapi.json in this folder their schema.
// openapi.json beside this file their form.
package serve
