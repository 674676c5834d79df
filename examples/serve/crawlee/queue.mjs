// A request queue for Crawlee that a frontier server holds: durable, shared by
// all processes that use it, and polite to each host for all of them together.
//
//	new BasicCrawler({requestQueue: new FrontierQueue('http://127.0.0.1:8348'), ...})
//
// It has the methods that Crawlee's crawlers call, and needs nothing but fetch.

export class FrontierQueue {
  // Crawlee sets these.
  internalTimeoutMillis = 300_000;
  requestLockSecs = 60;

  #leases = new Map(); // request id -> {lease, began}
  #over = false;
  #ready = [];
  #asking = null;
  #handled = 0;
  #added = 0;
  #keeper;

  constructor(server, {token, prefetch = 10} = {}) {
    this.server = server.replace(/\/$/, '');
    this.headers = {'content-type': 'application/json', ...(token && {authorization: `Bearer ${token}`})};
    this.prefetch = prefetch;
    this.name = this.id = 'frontier';
  }

  async #ask(path, body, headers = {}) {
    const answer = await fetch(this.server + path, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {...this.headers, ...headers},
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
    });
    const text = await answer.text();
    if (answer.ok) return text;
    let problem = {title: text};
    try { problem = JSON.parse(text); } catch { /* no problem document */ }
    const error = new Error(`frontier: ${answer.status}: ${problem.detail ?? problem.title}`);
    error.kind = (problem.type ?? '').split('/').pop();
    throw error;
  }

  // The server knows a request by its URL, or by its uniqueKey if that differs.
  #entry(request, {forefront = false} = {}) {
    const {url, uniqueKey, method = 'GET', payload, headers, userData, label, retryCount = 0, crawlDepth, skipNavigation, keepUrlFragment, noRetry} = request;
    const known = new URL(url);
    if (!keepUrlFragment) known.hash = '';
    if (uniqueKey && uniqueKey !== url && (method !== 'GET' || uniqueKey.includes('('))) known.hash = uniqueKey;
    const stored = {url, uniqueKey, method, payload, headers, userData, label, retryCount, crawlDepth, skipNavigation, keepUrlFragment, noRetry};
    return {url: known.href, depth: crawlDepth ?? 0, ...(forefront && {priority: 12}), meta: {crawlee: [JSON.stringify(stored)]}};
  }

  async addRequests(requests, options = {}) {
    const all = [];
    for await (const r of requests) all.push(typeof r === 'string' ? {url: r} : r);
    if (!all.length) return {processedRequests: [], unprocessedRequests: []};
    this.#over = false;
    const lines = all.map((r) => JSON.stringify(this.#entry(r, options))).join('\n');
    const text = await this.#ask('/v1/urls', lines, {'content-type': 'application/x-ndjson', accept: 'application/x-ndjson'});
    const done = {processedRequests: [], unprocessedRequests: []};
    text.trim().split('\n').forEach((line, i) => {
      const {status, error} = JSON.parse(line), r = all[i];
      if (status === 'bad' || status === 'refused') {
        console.error(`frontier: ${r.url}: ${error ?? status}`);
        done.unprocessedRequests.push({uniqueKey: r.uniqueKey ?? r.url, url: r.url, method: r.method});
        return;
      }
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

  // Leases that are out are kept; a killed process loses its own after requestLockSecs.
  #keep() {
    this.#keeper ??= setInterval(() => {
      for (const {lease} of this.#leases.values()) {
        this.#ask(`/v1/leases/${lease.lease}/extend`, {lease_s: this.requestLockSecs}).catch(() => {});
      }
    }, (this.requestLockSecs * 1000) / 3).unref();
  }

  async #fill() {
    const {leases, next, exhausted} = JSON.parse(
      await this.#ask('/v1/leases', {hosts: this.prefetch, max: this.prefetch, lease_s: this.requestLockSecs, wait_s: 1}));
    this.#ready.push(...leases);
    if (!leases.length && !next) {
      const s = exhausted ? {} : JSON.parse(await this.#ask('/v1/stats'));
      this.#over = !s.waiting && !s.scheduled && !s.leased;
    }
  }

  async fetchNextRequest() {
    this.#keep();
    if (!this.#ready.length) await (this.#asking ??= this.#fill().finally(() => { this.#asking = null; }));
    const lease = this.#ready.shift();
    if (!lease) return null;
    const {Request} = await import('@crawlee/core');
    const stored = lease.meta?.crawlee ? JSON.parse(lease.meta.crawlee[0]) : {url: lease.url};
    const request = new Request({...stored, id: lease.lease, uniqueKey: stored.uniqueKey ?? stored.url});
    this.#leases.set(request.id, {lease, began: Date.now()});
    return request;
  }

  async #done(request, outcome) {
    const out = this.#leases.get(request.id);
    if (!out) return null;
    this.#leases.delete(request.id);
    try {
      await this.#ask(`/v1/leases/${out.lease.lease}/done`, {duration_s: Math.max(1, Date.now() - out.began) / 1000, ...outcome});
    } catch (e) {
      if (e.kind !== 'not-leased') throw e; // else it comes again
    }
    return {requestId: request.id, uniqueKey: request.uniqueKey, wasAlreadyPresent: true, wasAlreadyHandled: true};
  }

  // Crawlee calls this when the handler has ended, or has failed for the last time.
  async markRequestHandled(request) {
    this.#handled++;
    return this.#done(request, {result: 'visited'});
  }

  // And this to try again: after the host's delay, in whatever process has room then.
  async reclaimRequest(request) {
    return this.#done(request, {result: 'failed', failure: 'other', meta: this.#entry(request).meta});
  }

  async isEmpty() {
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
