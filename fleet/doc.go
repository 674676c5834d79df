// Package fleet lets several machines serve one frontier, or several partitions of one. Any of them may die.
//
// A fleet has partitions, each a frontier that one node at a time owns: the one that is alive and has the best
// right to it, which follows from their names. Who has which hosts is not decided here: package fleet/route
// divides them. The log of a partition lies in an engine that the nodes share, an Engine: modules fleet/etcd and fleet/nats have such that live in the nodes themselves. Every
// batch of the frontier's store is in the log before it counts. When the owner is not heard of any more,
// another node makes the same store of a copy and the log, and opens the frontier as after a crash.
//
// # Who may contact a host
//
// Each node has a session in the engine's table, and renews it. Its right to hand out lasts for TTL from the
// beginning of the last renewal that succeeded, by its own clock. Another node ends the session when it has
// heard nothing for a tenth longer, by its own, with one compare-and-set; only then is a partition free. A
// node owns one from the moment when its own compare-and-set of the partition's entry has succeeded. The
// revision of that entry is the owner's epoch. It begins with a record at the end of the log, so that
// nothing which an earlier owner has on the way can follow.
//
// Clients have leases that outlive their owner. Before a node hands out a lease, the table says for how long
// leases may last, as a span: all who watch it know, by their own clocks, when the last lease will have
// ended. The next owner leaves every host alone until then, and for the host's delay. An owner that ends in
// order passes the leases on instead, and no host waits for longer than its lease and its delay. So
// none of this depends on what clocks of two machines show. Dates in the frontier do, so a node whose clock
// is surely more than a second off does not join.
//
// # What is promised
//
// What the frontier has acknowledged is on the disks of a majority of the nodes. A node may die, stand still
// for any time, lose its link, or come back late: nothing is lost, and no host is contacted too early.
// While too few nodes are alive for the engine, nothing is handed out and nothing is lost. What a batch
// whose commit failed contained may be there or not after the next opening, as after a crash.
//
// Package client and the programs that use it find the frontier at any node: see package crossing.
package fleet
