// Package partition divides a crawl among nodes: the host splitter of Mercator and of the IR book
// (section 20.2.1).
//
//	nodes := partition.NewNodes("node-a", "node-b", "node-c") // the same on each node
//	r, err := partition.New(partition.Options{Self: "node-a", Splitter: nodes, Send: send})
//	...
//	crawler.Options{OnPage: func(ctx context.Context, p *crawler.Page) (err error) {
//		p.Add, err = r.Keep(ctx, p.Add) // the others' links are sent, ours stay
//		return err
//	}}
//
// Each node runs a frontier and a crawler. A [Splitter] decides which node owns a host. A [Router]
// stands between the frontier, which eliminates duplicates, and the links of a page, after these
// were normalized and filtered. It sends URLs that another node owns to that node, which adds them
// to its frontier. The user chooses the transport: Send might make an HTTP request that the other
// side answers when its Add has returned. Without a Splitter, a single node owns everything. The
// program examples/split is a crawl by three nodes.
//
// # Why hosts and not URLs?
//
// The IR book asks why it is better to partition hosts than URLs. Politeness applies to a host: the
// node with all of its URLs also knows when it was last contacted, how long it took to answer, its
// back-off, its robots.txt, its connections and its address. If the URLs of a host were on several
// nodes, these would have to agree before each contact, or their requests together would be
// impolite. Moreover, most links lead to the host of their page: with hosts they stay on the node,
// with URLs all but one in n of them travel. The price is that a huge host cannot be shared;
// sharing would not help, because politeness limits what may be fetched from it. To keep hosts
// together that share more than a name, such as a registrable domain or an address, use [ByDomain]
// or a custom Splitter.
//
// # Why before the duplicate eliminator?
//
// The book also asks why the host splitter precedes the duplicate URL eliminator. Only the node
// that remembers all known URLs of a host can decide whether a URL is known: its owner, to which
// all other nodes send it. If each node eliminated duplicates before sending, all nodes together
// would remember URLs many times over, and the owner would still have to check, since two nodes may
// find the same URL. So a Router remembers only what it sent recently, to avoid sending it again
// (Options.Remember); losing this memory does no harm.
//
// # Nothing is lost
//
// Keep returns when the other nodes have stored their URLs. A crawler calls it before it reports
// the page as done; if it fails, the page fails and is retried, and its links are sent again. If
// the node dies in between, the page is fetched again after the restart. A link that is sent twice
// is known the second time.
//
// # When a crawl is over
//
// No node can know on its own whether more URLs will arrive. So the frontiers have
// frontier.Options.KeepOpen, and one process watches all of them: [Quiet].
//
// # When nodes come and go
//
// [NewNodes] chooses by rendezvous hashing: if one of n nodes leaves, only its hosts move, evenly
// to the others; if a node joins, it gets its share from all. The data of the hosts that move is in
// the frontiers of their previous nodes: use frontier.Export and Import to transfer it.
package partition
