// Package plan is the optimization model of the WebFountain crawler (Edwards, McCurley and Tomlin,
// "An adaptive model for optimizing performance of an incremental web crawler", WWW10, 2001,
// section 4), with a solver.
//
// It plans a cycle of T periods: how many of the pages in each of B buckets of similar change rate,
// and how many never-crawled pages, to crawl in each period. Use it to explain a crawl and to
// answer what-if questions. Package recrawl decides for each page, and does better, since it knows
// when the page was last fetched.
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
// x and z are the numbers of old and new pages crawled in a period. At its end, y is the number of
// pages in a bucket whose copy is obsolete, b the number of all pages in the bucket, and n the
// number of known pages that were never crawled. (4) to (6) are missing from the paper's HTML;
// those given here have the numbers of variables and constraints that the paper states.
//
// # The solver
//
// (2) makes the problem nonlinear and non-convex, with many local minima. But for one period, with
// the shares x/b of all others fixed, it is a fractional knapsack problem. [Solve] sweeps over the
// periods, sorts the buckets by gain per second, and repeats until nothing improves. It does so
// from several starts: what the paths of the bound crawl, on average and rounded at random, and the
// best plan so far with some buckets changed. All seeds are fixed: the same model gives the same
// plan.
//
// The bound is proved. Any plan is a mixture of paths, "this page is crawled in these periods",
// whose costs are linear; so the linear program over paths is a relaxation, and any prices mu_t >=
// 0 of a second in period t give a lower bound: each bucket takes its cheapest path, found by
// dynamic programming in O(T^2). A subgradient method searches for the best prices. [Plan].Bound
// holds for every plan, including those that no solver finds.
package plan
