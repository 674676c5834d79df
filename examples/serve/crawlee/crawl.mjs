// node crawl.mjs SERVER-URL SEED...
import {BasicCrawler, Configuration} from '@crawlee/basic';
import {FrontierQueue} from './queue.mjs';

const [server, ...seeds] = process.argv.slice(2);
const queue = new FrontierQueue(server);
const crawler = new BasicCrawler({
  requestQueue: queue,
  maxRequestRetries: 2,
  async requestHandler({request}) {
    const answer = await fetch(request.url, {redirect: 'manual', signal: queue.signal(request)}); // a redirect is another contact: it needs a lease
    if (answer.status >= 500 || answer.status === 429) throw new Error(`status ${answer.status}`);
    const html = await answer.text();
    const hrefs = [...html.matchAll(/href="([^"]+)"/g)].map(([, href]) => href);
    if (answer.headers.has('location')) hrefs.push(answer.headers.get('location'));
    const links = hrefs.map((href) => { try { return new URL(href, request.url); } catch { return null; } }); // such as http://[x
    await queue.addRequests(links.filter((u) => u?.origin === new URL(request.url).origin).map((u) => u.href));
    console.log(answer.status, request.url);
  },
}, new Configuration({persistStorage: false}));
await crawler.run(seeds, {purgeRequestQueue: false});
