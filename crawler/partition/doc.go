// Package partition divides a crawl among nodes: the host splitter of Mercator and of the
// IR book (section 20.2.1).
//
//	nodes := partition.NewNodes("node-a", "node-b", "node-c") // the same on each node
//	r, err := partition.New(partition.Options{Self: "node-a", Splitter: nodes, Send: send})
//	...
//	crawler.Options{OnPage: func(ctx context.Context, p *crawler.Page) (err error) {
//		p.Add, err = r.Keep(ctx, p.Add) // the others' links are sent, ours stay
//		return err
//	}}
//
// Each node has a frontier, and a crawler, of its own. A [Splitter] says which node owns
// a host; a [Router] stands between what a page's links passed, normalizing and filters,
// and the frontier, which eliminates duplicates. What another node owns is sent to it,
// and it adds it to its frontier. How it is sent is the user's: Send might make an HTTP
// request, which the other side answers when its Add has returned. A crawl on one node
// needs none of it: without a Splitter everything is the node's own. The program
// examples/split is a crawl by three nodes.
//
// # Why hosts and not URLs?
//
// The IR book asks why it is better to partition hosts than URLs. Politeness is owed to
// a host: when it was last contacted, how long it answered, its back-off, its
// robots.txt, its connections and its address are known where all of its URLs are. If
// its URLs lay on several nodes they would have to agree before each contact, or each
// would be polite alone and all together not. And most links lead to the host of their
// page: with hosts they stay on the node, with URLs all but one of n of them travel. The
// price is that a huge host cannot be shared; it would not help, as politeness bounds
// what may be fetched from it. To keep hosts together that share more than a name,
// such as those of one registrable domain or address, [ByDomain] or any Splitter will do.
//
// # Why before the duplicate eliminator?
//
// The book also asks why the host splitter precedes the duplicate URL eliminator.
// Whether a URL is known can be told only where all that is known of it is remembered: at
// its owner, to which all nodes that find it send it. If each node eliminated duplicates
// first, and sent the rest, all nodes would remember all URLs that they found, many times
// as many in all, and the owner would have to look again all the same, since two nodes
// may find the same one. So a Router remembers only what it sent of late, to spare
// sending it again (Options.Remember), which any loss of memory leaves correct.
//
// # Nothing is lost
//
// Keep returns when the others have what is theirs. A crawler calls it before it reports
// the page as done; if it fails, the page fails, is tried again, and its links are sent
// again. If the node dies in between, the page comes again after the restart. Links that
// are sent twice are known the second time.
//
// # When it is over
//
// No node alone knows whether more will come, so their frontiers have
// frontier.Options.KeepOpen, and somebody looks at all of them: [Quiet].
//
// # When nodes come and go
//
// [NewNodes] chooses by rendezvous hashing: if one of n nodes goes, only its hosts move,
// evenly to the others; if one comes, it gets its share from all. What moved is in the
// frontiers of the nodes that had it: frontier.Export and Import take it over.
package partition
