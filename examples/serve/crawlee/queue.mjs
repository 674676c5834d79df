// A request queue for Crawlee that a frontier server holds: durable, shared by
// all processes that use it, and polite to each host for all of them together.
//
//	new BasicCrawler({requestQueue: new FrontierQueue('http://127.0.0.1:8348'), ...})
//
// Several addresses of one frontier are separated by commas.
//
// It has the methods that Crawlee's crawlers call.

import {Request} from '@crawlee/basic';

const sleep = (s) => new Promise((r) => setTimeout(r, s * 1000));

export class FrontierQueue {
  // Crawlee sets these.
  internalTimeoutMillis = 300_000;
  requestLockSecs = 60;

  patienceSecs = 60; // how long to ask a server again that is away or busy

  #leases = new Map(); // request id -> {lease, began, over, watch}
  #over = false;
  #ready = [];
  #asking = null;
  #handled = 0;
  #added = 0;
  #keeper;

  constructor(server, {token, crawl, prefetch = 10} = {}) {
    this.crawl = crawl; // its name; without one, requests are added to DEFAULT, and taken from all crawls
    this.servers = server.split(',').map((s) => s.trim().replace(/\/$/, '')); // the first is asked
    for (const [i, s] of this.servers.entries()) {
      if (!/^https?:\/\/./.test(s) || !URL.canParse(s)) throw new Error(`frontier: ${s || 'an empty address'} is not the URL of a server`);
      if (this.servers.indexOf(s) < i) throw new Error(`frontier: ${s} is there twice`);
    }
    this.headers = {'content-type': 'application/json', ...(token && {authorization: `Bearer ${token}`})};
    this.prefetch = prefetch;
    this.name = this.id = 'frontier';
  }

  // Asks again while the server cannot be reached, and others in turn: all that it is asked may be sent twice.
  async #ask(path, body, {lines = 0, patience = this.patienceSecs} = {}) {
    const until = performance.now() + patience * 1000; // a clock that nobody sets
    const n = this.servers.length, said = new Map();
    for (let tries = 1, pause = 0.1; ; tries++) {
      const server = this.servers[0];
      try {
        return await this.#once(server, path, body, lines);
      } catch (e) {
        if (!e.passing) throw e;
        said.set(server, e.message);
        if (server === this.servers[0]) this.servers.push(this.servers.shift());
        if (tries >= n && performance.now() + pause * 1000 > until) {
          if (n > 1) e.message = [...said].map(([s, why]) => `${s}: ${why}`).join('; ');
          throw e;
        }
        await sleep(pause / n);
        if (tries % n === 0) pause = Math.min(2 * pause, 2);
      }
    }
  }

  async #once(server, path, body, lines) {
    const ndjson = lines && {'content-type': 'application/x-ndjson', accept: 'application/x-ndjson'};
    const answer = await fetch(server + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {...this.headers, ...ndjson},
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    }).catch((e) => { throw Object.assign(new Error(`frontier: ${e.cause?.message ?? e.message}`), {passing: true}); });
    const text = await answer.text().catch((e) => { throw Object.assign(e, {passing: true}); });
    const got = text.trim().split('\n');
    let problem = {status: answer.status, title: text};
    try { problem = {...problem, ...JSON.parse(lines ? got.at(-1) : text)}; } catch { /* no problem document */ }
    if (answer.ok && !(lines && problem.type)) { // a problem may be the last line
      if (!lines) return text;
      if (got.length === lines) return got.map((line) => JSON.parse(line));
      throw Object.assign(new Error(`frontier: ${got.length} lines for ${lines}`), {passing: true});
    }
    throw Object.assign(new Error(`frontier: ${problem.status}: ${problem.detail ?? problem.title}`), {
      kind: (problem.type ?? '').split('/').pop(),
      passing: [503, 507].includes(problem.status),
    });
  }

  // The server knows a request by its URL, or by its uniqueKey if that differs.
  #entry(request, {forefront = false} = {}) {
    const {url, method = 'GET', payload, headers, userData, label, retryCount = 0, crawlDepth, skipNavigation, keepUrlFragment, noRetry} = request;
    const uniqueKey = request.uniqueKey ?? Request.computeUniqueKey(
      {url, method, payload, keepUrlFragment, useExtendedUniqueKey: request.useExtendedUniqueKey ?? method !== 'GET'});
    const known = new URL(url);
    if (!keepUrlFragment) known.hash = '';
    if (method !== 'GET' || (uniqueKey !== url && uniqueKey !== Request.computeUniqueKey({url, keepUrlFragment}))) known.hash = uniqueKey;
    const stored = {url, uniqueKey, method, payload, headers, userData, label, retryCount, crawlDepth, skipNavigation, keepUrlFragment, noRetry};
    return {url: known.href, crawl: this.crawl, depth: crawlDepth ?? 0, ...(forefront && {priority: 12}), meta: {crawlee: [JSON.stringify(stored)]}};
  }

  async addRequests(requests, options = {}) {
    const all = [];
    for await (const r of requests) all.push(typeof r === 'string' ? {url: r} : r);
    const done = {processedRequests: [], unprocessedRequests: []};
    const refuse = (r, why) => {
      console.error(`frontier: ${r.url}: ${why}`);
      done.unprocessedRequests.push({uniqueKey: r.uniqueKey ?? r.url, url: r.url, method: r.method});
    };
    const lines = [], sent = [];
    for (const r of all) {
      try {
        lines.push(JSON.stringify(this.#entry(r, options)));
        sent.push(r);
      } catch (e) { // no URL
        refuse(r, e.message);
      }
    }
    if (!lines.length) return done;
    this.#over = false;
    const verdicts = await this.#ask('/v1/urls', lines.join('\n'), {lines: lines.length});
    verdicts.forEach(({status, error}, i) => {
      const r = sent[i];
      if (status === 'bad' || status === 'refused') return refuse(r, error ?? status);
      if (status === 'new') this.#added++;
      const known = status === 'known';
      done.processedRequests.push({requestId: r.url, uniqueKey: r.uniqueKey ?? r.url, wasAlreadyPresent: known, wasAlreadyHandled: false});
    });
    return done;
  }

  async addRequest(request, options) {
    const {processedRequests: [info]} = await this.addRequests([request], options);
    if (!info) throw new Error(`frontier: ${request.url} was refused`);
    return info;
  }

  async addRequestsBatched(requests, options) {
    const {processedRequests} = await this.addRequests(requests, options);
    return {addedRequests: processedRequests, waitForAllRequestsToBeAdded: Promise.resolve(processedRequests)};
  }

  // Aborts shortly before the lease of a request ends, which happens while no server answers: another process may
  // have the host then. Give it to whatever fetches the request.
  signal(request) { return this.#leases.get(request.id)?.over.signal ?? AbortSignal.abort(); }

  // When a lease asked for now ends.
  #until() { return performance.now() + this.requestLockSecs * 1000; }

  // Leases that are out are kept; a killed process loses its own after requestLockSecs.
  #keep() {
    if (this.#keeper) return;
    this.#keeper = setInterval(() => {
      const held = [...this.#leases.values()].map(({lease}) => lease);
      for (const lease of [...this.#ready, ...held]) {
        const until = this.#until();
        this.#ask(`/v1/leases/${lease.lease}/extend`, {lease_s: this.requestLockSecs}, {patience: 0}).then(
          () => { lease.until = until; },
          (e) => { if (e.kind === 'not-leased') lease.until = 0; });
      }
    }, (this.requestLockSecs * 1000) / 3).unref();
    process.once('beforeExit', () => this.close());
  }

  // Gives back what was fetched ahead, for other processes. Node.js calls it when a process has no more to do.
  async close() {
    clearInterval(this.#keeper);
    for (const {lease} of this.#ready.splice(0)) {
      await this.#ask(`/v1/leases/${lease}/done`, {result: 'requeue', uncontacted: true}, {patience: 0}).catch(() => {});
    }
  }

  async #fill() {
    this.#keep();
    const until = this.#until();
    const {leases, exhausted} = JSON.parse(
      await this.#ask('/v1/leases', {crawls: this.crawl && [this.crawl], hosts: this.prefetch, max: this.prefetch, lease_s: this.requestLockSecs, wait_s: 1}));
    this.#ready.push(...leases.map((lease) => ({...lease, until})));
    this.#over = !leases.length && Boolean(exhausted);
  }

  async fetchNextRequest() {
    if (await this.isEmpty()) return null;
    const lease = this.#ready.shift();
    if (!lease) return null; // another call took it
    const stored = lease.meta?.crawlee ? JSON.parse(lease.meta.crawlee[0]) : {url: lease.url};
    const request = new Request({...stored, id: lease.lease, uniqueKey: stored.uniqueKey ?? stored.url});
    const over = new AbortController(), margin = Math.min(1000, this.requestLockSecs * 250);
    const watch = setInterval(() => {
      if (performance.now() > lease.until - margin) over.abort(new Error(`frontier: the lease of ${request.url} has ended`));
    }, margin / 4).unref();
    this.#leases.set(request.id, {lease, began: performance.now(), over, watch});
    return request;
  }

  async #done(request, outcome) {
    const out = this.#leases.get(request.id);
    if (!out) return null;
    clearInterval(out.watch);
    if (out.over.signal.aborted) outcome = {result: 'requeue'};
    try {
      await this.#ask(`/v1/leases/${out.lease.lease}/done`, {duration_s: Math.max(1, performance.now() - out.began) / 1000, ...outcome});
    } catch (e) {
      if (e.kind !== 'not-leased') throw e; // else it comes again
    }
    this.#leases.delete(request.id);
    return {requestId: request.id, uniqueKey: request.uniqueKey, wasAlreadyPresent: true, wasAlreadyHandled: true};
  }

  // Crawlee calls this when the handler has ended, or has failed for the last time.
  async markRequestHandled(request) {
    const done = await this.#done(request, {result: 'visited'});
    if (done) this.#handled++;
    return done;
  }

  // And this to try again: after the host's delay, in whatever process has room then.
  async reclaimRequest(request) {
    return this.#done(request, {result: 'failed', failure: 'other', meta: this.#entry(request).meta});
  }

  async isEmpty() {
    this.#ready = this.#ready.filter(({until}) => until > performance.now()); // the others come again
    if (!this.#ready.length) await (this.#asking ??= this.#fill().finally(() => { this.#asking = null; }));
    return !this.#ready.length;
  }

  async isFinished() {
    return !this.#ready.length && !this.#leases.size && this.#over;
  }

  async handledCount() { return this.#handled; }
  getTotalCount() { return this.#added; }
  getPendingCount() { return this.#added - this.#handled; }
  async getInfo() { return {id: this.id, handledRequestCount: this.#handled, totalRequestCount: this.#added}; }
  async drop() { throw new Error('frontier: the queue is the server\'s; delete it there'); }
  async *[Symbol.asyncIterator]() { for (let r; (r = await this.fetchNextRequest());) yield r; }
}
