// Package plan is the optimization model of the WebFountain crawler (Edwards,
// McCurley and Tomlin, "An adaptive model for optimizing performance of an
// incremental web crawler", WWW10, 2001, section 4), and a solver for it.
//
// It plans a cycle of T periods ahead: how many of the pages in each of B buckets
// of similar change rate, and how many pages never crawled, to crawl in each
// period. It explains and answers what-ifs; package recrawl decides page by page
// and does better, as it knows when each page was fetched last.
//
// # The model
//
// With the paper's names, i = 1..B, t = 1..T:
//
//	min  sum_t ( sum_i oldwt_it y_it + newwt_t n_t )
//	(1)  sum_i cconst_it x_it + dconst_t z_t <= Cconst_t
//	(2)  y_it = (1 - x_it/b_i,t-1) ((1 - a_it) y_i,t-1 + a_it b_i,t-1)
//	(3)  n_t  = n_t-1 + sum_i oldnwt_it x_it + (newnwt_t - 1) z_t + nconst_t
//	(4)  b_it = b_i,t-1 + p_i z_t,  p_i = b_i0 / sum_j b_j0
//	(5)  0 <= x_it <= b_i,t-1
//	(6)  0 <= z_t <= n_t-1
//
// x and z are the pages crawled, old and new; y those of which the copy is
// obsolete, b all of a bucket, n those known and never crawled, at the end of a
// period. (4) to (6) are lost in the paper's HTML; these have the numbers of
// variables and constraints that it gives.
//
// # The solver
//
// (2) makes the problem nonlinear and not convex: there are many local minima.
// But for one period, with the shares x/b of all others fixed, it is a fractional
// knapsack: [Solve] sweeps over the periods, sorts the buckets by gain per second,
// and repeats until nothing improves, from several starts: what the bound's paths
// crawl, on average and by lot, and the best plan so far with some buckets changed.
// Nothing is left to chance: the same model has the same plan.
//
// The bound is a proof. Any plan is a mixture of paths, "this page is crawled in
// these periods", whose costs are linear; so the linear program over paths is a
// relaxation, and any prices mu_t >= 0 of a second in period t give a lower bound
// of it: each bucket takes its cheapest path, found by dynamic programming in
// O(T^2). The best prices are searched by a subgradient method. [Plan].Bound
// holds for every plan there is, also for those that no solver finds.
package plan
