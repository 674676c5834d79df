// Package recrawl decides when the pages of a continuous crawl are fetched again, so that their
// copies are as fresh as a budget of fetches allows.
//
// It does not depend on a frontier: the caller reports each fetch, and the Scheduler returns when
// the next one is due. It stores 4 bytes per page, its State; with the times of the last and the
// next fetch, the record of a Page has 12 bytes.
//
//	s, err := recrawl.New(recrawl.Options{Budget: 20})  // fetches per second
//	page, verdict := s.Admit(weight, host, now)         // a URL that was found
//	page, verdict = s.Done(page, recrawl.Visit{At: now, Outcome: recrawl.Changed})
//	// store page; when page.Due has come call Recheck, and fetch it
//	page, when := s.Recheck(page, now)
//
// Package recrawl/adapter does this for a frontier.
//
// # The model
//
// A page changes at random times, lambda times a day (a Poisson process). If it is fetched every t
// days, the share of the time for which its copy is fresh is
//
//	F(lambda, t) = (1 - e^(-lambda t)) / (lambda t)
//
// [Freshness]. With a budget of R fetches a day, the sum of weight * F over all pages is greatest
// if a fetch has the same value for every page that is fetched at all, at the time of the fetch
// (Cho and Garcia-Molina, "Effective page refresh policies for Web crawlers", TODS 2003; Azar et
// al., "Tractable near-optimal policies for crawling", PNAS 2018):
//
//	V(t) = w [ (1 - e^(-lambda t))/lambda - t e^(-lambda t) ] = L
//
// [Index]. L is the price of a fetch, in days of weight. It determines the [Interval] of each page:
// g^-1(L lambda / w) / lambda with g(x) = 1 - e^-x (1+x). A page with w/lambda <= L changes too
// fast for its weight, and is fetched after MaxInterval. The policy is a threshold on an index, one
// table look-up per fetch; no global optimization is needed.
//
// The price comes from a histogram of all pages by rate and weight: it is the L at which their
// demand, the sum of 1/t, equals the budget. It is computed again each time a twentieth of the
// pages has been processed, which takes about 50 microseconds whatever their number. A price is
// trusted for no longer than the budget needs for two fetches of every page; after that time
// Recheck decides about a page again, without a fetch. Otherwise pages that were put off for a year
// at a high price would count as demand that never comes.
//
// A host whose pages want more fetches than politeness allows ([Scheduler.SetHostRate]) gets a
// separate price, from a histogram of its pages. The fetches that it cannot use go to other hosts.
//
// # Learning
//
// lambda has a Gamma(alpha, beta) distribution, initially Gamma(0.5, 15 days). After T days without
// a change, beta grows by T. If the last change was u days ago (Last-Modified), alpha grows by 1
// and beta by u. After a change at an unknown time, alpha and beta are set to match the mean and
// the variance of the posterior:
//
//	r = beta/(beta+T), D_k = 1 - r^(alpha+k)
//	m1 = alpha/beta D_1/D_0, m2 = alpha(alpha+1)/beta^2 D_2/D_0, v = m2 - m1^2
//	alpha' = m1^2/v, beta' = m1/v
//
// alpha is limited to 16, so that a page whose behaviour changes is learned again. Rate and alpha
// are stored as bytes on logarithmic scales, with random rounding, so that weak evidence has a
// small effect instead of none.
//
// A page that differs at every fetch looks like any other if it is seldom fetched, and with a high
// weight it would take most of the budget. So a page that changed may be fetched again after an
// hour; if it has changed again, though that was improbable, it is fetched again after a minute. A
// page that changed within that minute is volatile, and is left alone.
//
// Such a probe costs a fetch; omitting it costs one if the page is volatile. The odds q that the
// page is volatile are the prior odds in this crawl, learned from earlier probes, divided by the
// probability of each change that its fetches found, if the page were ordinary. A fetch that finds
// no change makes the odds small. With the probability c of a change until the next fetch, t days
// from now, a probe is made if
//
//	q (1 - t/MaxInterval) > 0.85 (1 - c)
//
// because it saves the next fetch of a volatile page, and is wasted if the next regular fetch would
// have shown that the page is not volatile. So there are few probes where pages are fetched often
// and no volatile pages were found, and probes after one or two changes where fetches are a month
// apart. The result for a page is kept: it is not probed again until a fetch has found it
// unchanged.
//
// A late probe counts as long as a change would still be a surprise. If the second probe is later
// than Probe, as with a budget or a host of one fetch a day, a page that changes at every fetch and
// a page that changes every few hours look alike: the page counts as changing once in the time that
// the probe took.
//
// # New pages
//
// A page that was never crawled has no copy, however long it waits: its index is w / E[lambda]. It
// is worth fetching before known pages if that is at least the price. [Stats].NewShare is the
// resulting share of fetches for new pages, between Options.NewShareMin and NewShareMax: the
// probability p with which a crawler chooses between its queue of never-crawled pages and the other
// one (Figure 1 in Edwards, McCurley and Tomlin, "An adaptive model for optimizing performance of
// an incremental web crawler", WWW10 2001, whose optimization model is package recrawl/plan).
//
// # Unusual input
//
//   - A visit before the last one (a clock was set back) teaches nothing; the page is due one
//     interval after it.
//   - A Last-Modified in the future, or one that a fetch disproves, is ignored. Further values from
//     that host are ignored until enough of them have proved true.
//   - With a budget near 0 each page gets its MaxInterval, with a budget beyond all demand its
//     MinInterval. Budgets and rates that are not numbers are refused. With a set budget of any
//     size, Recheck lets 64 fetches through at once, and puts none off for more than a year at a
//     time.
//   - Weights that are not numbers, or not above 0, count as 0; other weights are limited to
//     between 1e-4 and 1e4.
//   - No page with a weight above 0 is due later than MaxInterval after its last fetch, except
//     pages that are gone or denied (30 to 240 days, once that is confirmed).
//   - After a pause everything is overdue. With a set budget, Recheck lets through at once what
//     Options.Burst allows, then 1.25 times the budget, in no particular order. Learning continues
//     with the true intervals.
//   - A list of changed URLs makes at most 16 pages due if its host has no record of true claims.
//
// The caller supplies the time. A Scheduler reads no clock, starts no goroutine and does no I/O.
// The same Seed and the same sequence of calls give the same results.
package recrawl
