// Package recrawl decides when the pages of an ever-running crawl are fetched
// again, so that a copy of them is as fresh as a budget of fetches allows.
//
// It needs nothing of the frontier: it is told of each fetch and answers when the
// next one is due. What it keeps of a page is 4 bytes, its State; with the times
// of the last and next fetch a Page is a record of 12.
//
//	s, err := recrawl.New(recrawl.Options{Budget: 20})  // fetches per second
//	page, verdict := s.Admit(weight, host, now)         // a URL that was found
//	page, verdict = s.Done(page, recrawl.Visit{At: now, Outcome: recrawl.Changed})
//	// keep page; when page.Due has come ask Recheck, and fetch it
//	page, when := s.Recheck(page, now)
//
// Package recrawl/adapter does that for a frontier.
//
// # The model
//
// A page changes at random times, lambda times a day (a Poisson process). If it
// is fetched every t days, its copy is fresh for a share of the time of
//
//	F(lambda, t) = (1 - e^(-lambda t)) / (lambda t)
//
// [Freshness]. The sum of weight * F over all pages, at a budget of R fetches a
// day, is greatest if all pages that are fetched at all have the same value of a
// fetch when it is made (Cho and Garcia-Molina, "Effective page refresh policies
// for Web crawlers", TODS 2003; Azar et al., "Tractable near-optimal policies for
// crawling", PNAS 2018):
//
//	V(t) = w [ (1 - e^(-lambda t))/lambda - t e^(-lambda t) ] = L
//
// [Index]. L is the price of a fetch, in days of weight. So each page has an
// [Interval] of its own, g^-1(L lambda / w) / lambda with g(x) = 1 - e^-x (1+x);
// and a page with w/lambda <= L changes too fast for its weight, and is left for
// MaxInterval. That is a threshold on an index, one look in a table per fetch:
// there is no global solution to be computed.
//
// The price comes from a histogram of all pages by rate and weight: it is the L
// at which their demand, the sum of 1/t, is the budget. Every twentieth of the
// pages it is found again, in some 50 microseconds whatever their number. A price is
// trusted only so far ahead as the budget takes for two fetches of every page:
// after that Recheck looks at a page again, without a fetch. Otherwise pages that
// were put off for a year at a high price were demand that does not come.
//
// A host whose pages want more fetches than politeness allows ([Scheduler.
// SetHostRate]) has a price of its own, from its own histogram; what it cannot
// take is left to the others.
//
// # Learning
//
// lambda has a Gamma(alpha, beta) distribution, at first Gamma(0.5, 15 days).
// After T days without a change beta grows by T; if the last change came u days
// ago (Last-Modified), alpha by 1 and beta by u; after a change at an unknown
// time alpha and beta are those with the mean and the variance of the posterior:
//
//	r = beta/(beta+T), D_k = 1 - r^(alpha+k)
//	m1 = alpha/beta D_1/D_0, m2 = alpha(alpha+1)/beta^2 D_2/D_0, v = m2 - m1^2
//	alpha' = m1^2/v, beta' = m1/v
//
// alpha is held at 16, so that a page whose habits change is learned anew. Rate
// and alpha are kept as bytes on logarithmic scales, rounded at random, so that
// little evidence counts for little and not for nothing.
//
// A page that differs at every fetch looks like any other if it is seldom
// fetched, and would take most of the budget if its weight is high. So a page that
// changed may be fetched again after an hour, and if that is a change too, though
// it was improbable, again after a minute; a page that changed in that minute is
// volatile, and is left alone.
//
// Such a probe costs a fetch, and not to make it costs one if the page is volatile.
// The odds q that it is are those that pages of this crawl have at first, learned
// from what probes found, divided by the probability of each change that its fetches
// found, had the page been like others; a fetch that finds no change makes them
// small. With the probability c of a change until the next fetch, t days from now,
// a probe is made if
//
//	q (1 - t/MaxInterval) > 0.85 (1 - c)
//
// for it saves the next fetch of a volatile page, and was in vain if the next fetch
// of the page would have told by itself that it is none. So probes are few where
// pages are fetched often and no volatile ones were found, and come after a change or
// two where each fetch is a month from the next. What a page was found to be stays
// with it: it is not probed again until a fetch has found it unchanged.
//
// A probe that comes late counts as long as a change would still be a surprise. If
// the second one comes later than Probe, as with a budget or a host of a fetch a day,
// a page that changes at every fetch and one that changes each few hours look alike:
// it counts as one that changes once in the time that the probe took.
//
// # New pages
//
// The copy of a page that was never crawled is worth nothing however long it
// waits: its index is w / E[lambda]. It is worth fetching before known pages if
// that is the price or more. [Stats].NewShare is the share of fetches for such
// pages that comes of it, within Options.NewShareMin and NewShareMax: the
// probability p with which a crawler chooses between its queue of pages never
// crawled and the other one (Figure 1 in Edwards, McCurley and Tomlin, "An
// adaptive model for optimizing performance of an incremental web crawler", WWW10
// 2001, whose optimization model is package recrawl/plan).
//
// # What may go wrong
//
//   - A visit before the last one (a clock that went back) teaches nothing; the
//     page is due an interval after it.
//   - A Last-Modified in the future, or one that a fetch proves wrong, is not used,
//     and neither are others of that host until it has told the truth often enough.
//   - A budget near 0 leaves each page its MaxInterval, a budget beyond all demand
//     its MinInterval. Budgets and rates that are no number are refused. Of a set
//     budget of any size Recheck lets 64 fetches through at once, and puts none off for
//     more than a year at a time.
//   - Weights that are no number, or not above 0, count as 0; others are held within
//     1e-4 and 1e4.
//   - No page of a weight above 0 is due later than MaxInterval after its last
//     fetch, but those that are gone or denied (30 to 240 days, once that is confirmed).
//   - After a pause all is overdue. With a budget, Recheck lets so much through at
//     once as Options.Burst says, then 1.25 times the budget, in no order; learning
//     goes on from the true intervals.
//   - A list of changed URLs of a host without a record of true ones makes at most
//     16 pages due.
//
// Time is the caller's. A Scheduler asks no clock, starts no goroutine and does
// no I/O. With one Seed and one sequence of calls it gives the same answers.
package recrawl
