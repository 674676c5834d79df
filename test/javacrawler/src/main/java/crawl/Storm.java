package crawl;

import crawlercommons.urlfrontier.CrawlID;
import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.Urlfrontier.AckMessage;
import crawlercommons.urlfrontier.Urlfrontier.DiscoveredURLItem;
import crawlercommons.urlfrontier.Urlfrontier.GetParams;
import crawlercommons.urlfrontier.Urlfrontier.KnownURLItem;
import crawlercommons.urlfrontier.Urlfrontier.StringList;
import crawlercommons.urlfrontier.Urlfrontier.URLInfo;
import crawlercommons.urlfrontier.Urlfrontier.URLItem;
import io.grpc.ConnectivityState;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Crawls for ever by the rules of StormCrawler's spout and status updater where they matter to a server that dies: links
 * and the page's own status are sent at once, and none waits for the other; what is not acknowledged within a
 * minute has failed, and only the end of the lease brings the page again; a broken stream is opened anew only when
 * the channel says TRANSIENT_FAILURE; with several addresses each task keeps its own.
 */
public final class Storm {
    private static final Duration EXPIRY = Duration.ofSeconds(60); // urlfrontier.cache.expireafter.sec
    private static final int BUCKETS = 10; // urlfrontier.max.buckets
    private static final int BETWEEN = 100; // spout.min.delay.queries, in milliseconds

    private final List<Task> tasks = new ArrayList<>();
    private final Set<String> cache = ConcurrentHashMap.newKeySet(); // status.updater.use.cache
    private final ExecutorService fetchers;
    private final Semaphore free;
    private final Fetcher fetcher;
    private final int hold;
    private final AtomicInteger fetched = new AtomicInteger();
    private final AtomicInteger acked = new AtomicInteger();
    private final AtomicInteger failed = new AtomicInteger();
    private final AtomicInteger expired = new AtomicInteger();
    private final AtomicInteger streams = new AtomicInteger();

    private Storm(List<String> addresses, InetSocketAddress proxy, int hold, int threads) {
        addresses.stream().sorted().forEach(a -> tasks.add(new Task(a)));
        fetcher = new Fetcher(proxy, "stormlike/1", Duration.ofMillis(1100));
        fetchers = Executors.newFixedThreadPool(threads);
        free = new Semaphore(threads);
        this.hold = hold;
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 3) {
            System.err.println("usage: Storm HOST:PORT[,HOST:PORT...] PROXY-URL LEASE-SECONDS");
            System.exit(2);
        }
        var proxy = URI.create(args[1]);
        var storm = new Storm(List.of(args[0].split(",")), new InetSocketAddress(proxy.getHost(), proxy.getPort()),
                Integer.parseInt(args[2]), 32);
        storm.tasks.forEach(t -> new Thread(t::spout).start());
        for (;;) {
            Thread.sleep(10_000);
            storm.say("fetched %d, acknowledged %d, failed %d, expired %d, streams %d", storm.fetched.get(), storm.acked.get(),
                    storm.failed.get(), storm.expired.get(), storm.streams.get());
        }
    }

    private void say(String format, Object... args) {
        System.out.println(Instant.now() + " " + String.format(format, args));
    }

    /** A spout and a status updater with an address of the frontier. */
    private final class Task implements StreamObserver<AckMessage> {
        private final String address;
        private final ManagedChannel channel;
        private final URLFrontierGrpc.URLFrontierStub frontier;
        private final Map<String, Instant> waits = new HashMap<>(); // urls that are not acknowledged
        private StreamObserver<URLItem> stream;

        Task(String address) {
            this.address = address;
            channel = Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build();
            channel.notifyWhenStateChanged(ConnectivityState.SHUTDOWN, () -> changed(ConnectivityState.SHUTDOWN));
            frontier = URLFrontierGrpc.newStub(channel).withWaitForReady();
            open();
            Executors.newSingleThreadScheduledExecutor().scheduleWithFixedDelay(this::expire, 1, 1, TimeUnit.SECONDS);
        }

        private synchronized void open() {
            streams.incrementAndGet();
            stream = frontier.putURLs(this);
        }

        private void changed(ConnectivityState before) {
            var now = channel.getState(true);
            say("%s: %s after %s", address, now, before);
            if (now == ConnectivityState.TRANSIENT_FAILURE) {
                open();
            }
            channel.notifyWhenStateChanged(now, () -> changed(now));
        }

        /** Asks again and again, with waitForReady and without a deadline. */
        private void spout() {
            var blocking = URLFrontierGrpc.newBlockingStub(channel).withWaitForReady();
            for (;;) {
                try {
                    var urls = blocking.getURLs(GetParams.newBuilder().setMaxUrlsPerQueue(1).setMaxQueues(BUCKETS)
                            .setDelayRequestable(hold).build());
                    while (urls.hasNext()) {
                        var info = urls.next();
                        free.acquire();
                        fetchers.execute(() -> page(info));
                    }
                } catch (StatusRuntimeException e) {
                    say("%s: GetURLs: %s", address, e.getMessage());
                } catch (InterruptedException e) {
                    return;
                }
                try {
                    Thread.sleep(BETWEEN);
                } catch (InterruptedException e) {
                    return;
                }
            }
        }

        private synchronized void store(URLItem item, boolean discovered) {
            if (discovered && waits.containsKey(item.getID())) {
                return; // is being sent
            }
            waits.put(item.getID(), Instant.now().plus(EXPIRY));
            try {
                stream.onNext(item);
            } catch (IllegalStateException e) {
                waits.remove(item.getID());
                failed.incrementAndGet();
            }
        }

        private synchronized void expire() {
            var now = Instant.now();
            var before = waits.size();
            waits.values().removeIf(now::isAfter);
            expired.addAndGet(before - waits.size());
        }

        @Override
        public synchronized void onNext(AckMessage ack) {
            if (waits.remove(ack.getID()) == null) {
                return;
            }
            if (ack.getStatus() == AckMessage.Status.FAIL) {
                failed.incrementAndGet();
                return;
            }
            acked.incrementAndGet();
            cache.add(ack.getID());
        }

        @Override
        public void onError(Throwable cause) {
            say("%s: PutURLs: %s", address, cause.getMessage());
        }

        @Override
        public void onCompleted() {
            say("%s: PutURLs ended", address);
        }
    }

    /** Fetches a page and sends its links and its status, as the bolts of a topology do. */
    private void page(URLInfo info) {
        try {
            var page = fetcher.fetch(info.getUrl());
            fetched.incrementAndGet();
            for (var link : page.links()) {
                if (!cache.contains(link)) {
                    var next = URLInfo.newBuilder().setUrl(link).setKey(URI.create(link).getHost()).setCrawlID(CrawlID.DEFAULT);
                    task(next.getKey()).store(URLItem.newBuilder().setID(link)
                            .setDiscovered(DiscoveredURLItem.newBuilder().setInfo(next)).build(), true);
                }
            }
            var status = StringList.newBuilder().addValues(String.valueOf(page.status())).build();
            var known = KnownURLItem.newBuilder().setInfo(info.toBuilder().putMetadata("fetch.statusCode", status))
                    .setRefetchableFromDate(Instant.now().getEpochSecond() + 86400); // fetchInterval.default
            task(info.getKey()).store(URLItem.newBuilder().setID(info.getUrl()).setKnown(known).build(), false);
        } catch (Exception e) {
            say("%s: %s", info.getUrl(), e);
        } finally {
            free.release();
        }
    }

    private Task task(String key) {
        return tasks.get(Math.floorMod(key.hashCode(), tasks.size()));
    }
}
