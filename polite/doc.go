// Package polite makes programs that have an HTTP client of their own polite. A [Transport] is an
// http.RoundTripper that waits for a host's turn in a [frontier.Frontier]. [Robots] reads
// robots.txt; a Transport without Robots neither reads nor obeys it. [OutcomeOf] says what an answer
// or an error means for the frontier.
//
//	client := &http.Client{Transport: &polite.Transport{Robots: &polite.Robots{Agent: "examplebot/1.0 (+https://bot.example)"}}}
//	resp, err := client.Get("https://a.example/") // when a.example may be contacted, if it allows that
//
// # Traps
//
// http.Client.Timeout counts the wait for the turn, and so does the deadline of a request's
// context. Set [Transport.Timeout] instead: it counts from the turn on. A request whose own deadline
// ends before it had as much time as it waited is not held against its host.
//
// A contact lasts until the body of the answer has been read to its end, or is closed. Until then
// other requests to the host wait. A body that is never closed blocks its host until the lease
// expires (frontier.Options.LeaseTime, ten minutes by default), and a goroutine that keeps one open
// while it makes another request to the host waits for itself.
//
// A host that only fails is contacted rarely; a request to it may wait for hours. So set
// [Transport.MaxWait], or a deadline.
//
// Politeness holds among those who share one frontier. Two processes cannot open one store: give each
// process its own hosts, let one process make the requests, or let both use one served frontier.
//
// # Redirects
//
// An http.Client that follows a redirect makes another request, which waits for its own turn: the
// delay of the same host, or the turn of another.
//
// # With leases
//
// A program that takes URLs from the frontier (Next, Leases) has the turn with each lease already.
// [WithLease] lets a request use that; [Visit.Outcome] is what to end the lease with. A client with
// CheckRedirect: [LastResponse] does not follow redirects then: their targets go to the frontier,
// and come when their hosts are due.
//
// # Addresses
//
// Hosts that share an address take turns, too, unless [Transport.Base] is set without
// [Transport.Lookup].
package polite
