package crawl;

import crawlercommons.urlfrontier.URLFrontierGrpc;
import crawlercommons.urlfrontier.Urlfrontier.AckMessage;
import crawlercommons.urlfrontier.Urlfrontier.DiscoveredURLItem;
import crawlercommons.urlfrontier.Urlfrontier.KnownURLItem;
import crawlercommons.urlfrontier.Urlfrontier.URLInfo;
import crawlercommons.urlfrontier.Urlfrontier.URLItem;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;

/**
 * Reports URLs on one long PutURLs stream, as StormCrawler's StatusUpdaterBolt does: the ID of a
 * message is its URL, any number of messages is in flight, and FAIL fails what waits for the
 * acknowledgement. A stream is opened anew only after the last one broke.
 */
final class Updater implements StreamObserver<AckMessage> {
    private final URLFrontierGrpc.URLFrontierStub frontier;
    private final Map<String, List<CompletableFuture<Void>>> waiting = new HashMap<>();
    private StreamObserver<URLItem> stream;
    private int streams;

    Updater(ManagedChannel channel) {
        frontier = URLFrontierGrpc.newStub(channel).withWaitForReady();
    }

    CompletableFuture<Void> discovered(URLInfo info) {
        return send(URLItem.newBuilder()
                .setDiscovered(DiscoveredURLItem.newBuilder().setInfo(info)), info.getUrl());
    }

    /** Reports a URL that was asked for; it comes again at that second, or never if it is 0. */
    CompletableFuture<Void> known(URLInfo info, long again) {
        return send(URLItem.newBuilder()
                .setKnown(KnownURLItem.newBuilder().setInfo(info).setRefetchableFromDate(again)),
                info.getUrl());
    }

    private synchronized CompletableFuture<Void> send(URLItem.Builder item, String id) {
        if (stream == null) {
            streams++;
            stream = frontier.putURLs(this);
        }
        var done = new CompletableFuture<Void>();
        waiting.computeIfAbsent(id, k -> new ArrayList<>()).add(done);
        stream.onNext(item.setID(id).build());
        return done;
    }

    @Override
    public void onNext(AckMessage ack) {
        List<CompletableFuture<Void>> all;
        synchronized (this) {
            all = waiting.remove(ack.getID());
        }
        if (all == null) {
            return; // a second message of one ID: the first acknowledgement counted for both
        }
        for (var done : all) {
            if (ack.getStatus() == AckMessage.Status.FAIL) {
                done.completeExceptionally(new IOException("the frontier answers FAIL"));
            } else {
                done.complete(null);
            }
        }
    }

    @Override
    public void onError(Throwable cause) {
        System.err.println("PutURLs broke: " + cause.getMessage());
        lose(cause);
    }

    @Override
    public void onCompleted() {
        lose(new IOException("the frontier ended the stream"));
    }

    private void lose(Throwable cause) {
        List<List<CompletableFuture<Void>>> lost;
        synchronized (this) {
            stream = null;
            lost = new ArrayList<>(waiting.values());
            waiting.clear();
        }
        lost.forEach(all -> all.forEach(done -> done.completeExceptionally(cause)));
    }

    /** How many streams there have been. */
    synchronized int streams() {
        return streams;
    }

    synchronized void close() {
        if (stream != null) {
            stream.onCompleted();
        }
    }
}
