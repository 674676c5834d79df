package crawl;

import crawlercommons.urlfrontier.CrawlID;
import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.Urlfrontier.BlockQueueParams;
import crawlercommons.urlfrontier.Urlfrontier.CrawlLimitParams;
import crawlercommons.urlfrontier.Urlfrontier.GetParams;
import crawlercommons.urlfrontier.Urlfrontier.QueueDelayParams;
import crawlercommons.urlfrontier.Urlfrontier.QueueWithinCrawlParams;
import crawlercommons.urlfrontier.Urlfrontier.StringList;
import crawlercommons.urlfrontier.Urlfrontier.URLInfo;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.StatusRuntimeException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Crawls some hosts until nothing waits for them in a URLFrontier server. It asks for the URLs of
 * any crawl, one of each queue, as StormCrawler's spout does with one URL for each bucket, and
 * fetches at once what it gets.
 */
public final class Crawl {
    private static final String FLAGS = """
            usage: Crawl -frontier HOST:PORT -proxy HOST:PORT -hosts A,B,... [flags] SEED...
              -threads N          pages fetched at the same time (default 16)
              -agent NAME/VERSION sent as User-Agent
              -pause MS           between robots.txt and the first page of a host
              -hold S             how long the frontier keeps a URL for this crawler (default 20)
              -delay HOST=S       SetDelay of a queue, once the seeds are there
              -block HOST=S       BlockQueueUntil so many seconds from then
              -limit HOST=N       SetCrawlLimit of a queue
            """;

    private final ManagedChannel channel;
    private final URLFrontierGrpc.URLFrontierBlockingStub frontier;
    private final Updater updater;
    private final Fetcher fetcher;
    private final Set<String> hosts;
    private final int threads;
    private final int hold;
    private final Semaphore free;
    private final ExecutorService workers;
    private final AtomicInteger fetched = new AtomicInteger();
    private final AtomicInteger unreported = new AtomicInteger();

    private Crawl(Arguments flags) {
        channel = ManagedChannelBuilder.forTarget(flags.need("-frontier")).usePlaintext().build();
        frontier = URLFrontierGrpc.newBlockingStub(channel).withWaitForReady();
        updater = new Updater(channel);
        fetcher = new Fetcher(address(flags.need("-proxy")), flags.get("-agent", "javacrawler/1"),
                Duration.ofMillis(flags.number("-pause", 0)));
        hosts = Set.of(flags.need("-hosts").split(","));
        threads = flags.number("-threads", 16);
        hold = flags.number("-hold", 20);
        free = new Semaphore(threads);
        workers = Executors.newFixedThreadPool(threads);
    }

    public static void main(String[] args) throws Exception {
        Arguments flags;
        Crawl crawl;
        try {
            flags = new Arguments(args);
            crawl = new Crawl(flags);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage() + "\n" + FLAGS);
            System.exit(2);
            return;
        }
        for (var seed : flags.words()) {
            crawl.updater.discovered(info(seed, Map.of())).get(30, TimeUnit.SECONDS);
        }
        var limited = crawl.set(flags);
        crawl.run(limited);
        System.out.printf("fetched %d, of them not reported in time %d; PutURLs streams %d%n",
                crawl.fetched.get(), crawl.unreported.get(), crawl.updater.streams());
        crawl.updater.close();
        crawl.workers.shutdown();
        crawl.channel.shutdown().awaitTermination(10, TimeUnit.SECONDS);
    }

    /** Asks for what the flags want of some queues; returns the hosts that have a limit. */
    private List<String> set(Arguments flags) {
        flags.pairs("-delay").forEach((host, s) -> frontier.setDelay(
                QueueDelayParams.newBuilder().setKey(host).setDelayRequestable(s).build()));
        flags.pairs("-block").forEach((host, s) -> frontier.blockQueueUntil(
                BlockQueueParams.newBuilder().setKey(host).setTime(System.currentTimeMillis() / 1000 + s).build()));
        var limits = flags.pairs("-limit");
        limits.forEach((host, n) -> frontier.setCrawlLimit(
                CrawlLimitParams.newBuilder().setKey(host).setLimit(n).build()));
        return List.copyOf(limits.keySet());
    }

    private void run(List<String> limited) throws InterruptedException {
        for (int empty = 0; empty < 3;) {
            free.acquire(); // one thread at least is idle
            int more = free.drainPermits() + 1;
            int got = 0;
            try {
                got = take(more);
            } catch (StatusRuntimeException e) {
                System.err.println("GetURLs: " + e.getMessage());
            }
            free.release(more - got);
            if (got > 0) {
                empty = 0;
                continue;
            }
            empty = free.availablePermits() == threads && nothingWaits(limited) ? empty + 1 : 0;
            Thread.sleep(50);
        }
    }

    private int take(int most) {
        var urls = frontier.getURLs(GetParams.newBuilder()
                .setMaxUrlsPerQueue(1).setMaxQueues(most).setDelayRequestable(hold).build());
        int got = 0;
        try {
            while (urls.hasNext()) {
                var info = urls.next();
                got++;
                workers.execute(() -> {
                    try {
                        page(info);
                    } finally {
                        free.release();
                    }
                });
            }
        } catch (StatusRuntimeException e) { // what came before the break is being fetched
            System.err.println("GetURLs broke after " + got + ": " + e.getMessage());
        }
        return got;
    }

    private boolean nothingWaits(List<String> limited) {
        try {
            long size = size("");
            for (var host : limited) {
                size -= size(host);
            }
            return size == 0;
        } catch (StatusRuntimeException e) {
            System.err.println("GetStats: " + e.getMessage());
            return false;
        }
    }

    private long size(String key) {
        return frontier.getStats(
                QueueWithinCrawlParams.newBuilder().setKey(key).setCrawlID(CrawlID.DEFAULT).build()).getSize();
    }

    /** Fetches a page and reports it once its links are safe; what fails on the way comes again. */
    private void page(URLInfo info) {
        var tries = info.getMetadataOrDefault("tries", StringList.getDefaultInstance()).getValuesCount() + 1;
        long again = 0;
        var metadata = info.toBuilder();
        try {
            var page = fetcher.fetch(info.getUrl());
            fetched.incrementAndGet();
            metadata.putMetadata("fetch.statusCode", list(List.of(String.valueOf(page.status()))));
            if (page.status() >= 500 && tries < 3) {
                again = soon();
            }
            var links = new ArrayList<CompletableFuture<Void>>();
            for (var link : page.links()) {
                if (hosts.contains(URI.create(link).getHost())) {
                    links.add(updater.discovered(info(link, Map.of("parent", list(List.of(info.getUrl()))))));
                }
            }
            for (var link : links) {
                link.get(60, TimeUnit.SECONDS);
            }
        } catch (java.io.IOException e) {
            System.err.println(info.getUrl() + ": " + e);
            again = tries < 3 ? soon() : 0;
        } catch (Exception e) { // the links are not safe
            unreported.incrementAndGet();
            System.err.println(info.getUrl() + ": links: " + e);
            return;
        }
        if (again != 0) {
            var all = new ArrayList<String>();
            for (int i = 0; i < tries; i++) {
                all.add(String.valueOf(i));
            }
            metadata.putMetadata("tries", list(all));
        }
        try {
            updater.known(metadata.build(), again).get(60, TimeUnit.SECONDS);
        } catch (Exception e) {
            unreported.incrementAndGet();
            System.err.println(info.getUrl() + ": report: " + e);
        }
    }

    private static long soon() {
        return System.currentTimeMillis() / 1000 + 5;
    }

    private static URLInfo info(String url, Map<String, StringList> metadata) {
        return URLInfo.newBuilder().setUrl(url).setKey(URI.create(url).getHost())
                .setCrawlID(CrawlID.DEFAULT).putAllMetadata(metadata).build();
    }

    private static StringList list(List<String> values) {
        return StringList.newBuilder().addAllValues(values).build();
    }

    private static InetSocketAddress address(String hostPort) {
        int at = hostPort.lastIndexOf(':');
        return new InetSocketAddress(hostPort.substring(0, at), Integer.parseInt(hostPort.substring(at + 1)));
    }
}
