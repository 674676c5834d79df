// Package route owns the division of the hosts among parts. Each is a frontier that package serve
// serves, on one machine or on a fleet. The package keeps no URL, no lease and no file: any number of
// routers may answer for the same parts.
//
//	r, err := route.New(route.Options{Parts: map[string][]string{
//		"a": {"http://10.0.0.1:8348"},
//		"b": {"http://10.0.0.2:8348", "http://10.0.0.3:8348"}, // a fleet
//	}})
//	defer r.Close()
//	http.Serve(listener, r.Handler())
//
// A [Router] answers the requests of docs/http.md; docs/fleet.md says what each does.
//
// # Which part has a host
//
// The names of the parts decide, by rendezvous hashing, and not their
// addresses. All hosts below one domain are at one part: the domain is the shortest end of the host's
// name that is no public suffix, so that a rule or a limit of *.example.org, and of everything below it, is
// exact. All routers need the same names, and they must not change while the parts have URLs.
//
// # Leases
//
// The ID of a lease gets a tail that is made of the names of its part and of all parts. So any router with the same
// parts finds the part again, and a router with others knows that it does not.
//
// # Links
//
// A page's links to hosts of other parts are added there before the end of its lease is reported. If the
// router dies in between, the end is not acknowledged; the client repeats it, and adding again does no
// harm. So while a link is under way, a lease is out. That is why a router may say that nothing is left
// (exhausted) once every part has said so and no part has added or handed out anything from before the
// first answer until after the last (Mattern's four counters, 1987).
package route
