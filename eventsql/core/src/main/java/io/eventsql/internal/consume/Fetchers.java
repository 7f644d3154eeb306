package io.eventsql.internal.consume;

import io.eventsql.ConsumerSpec;
import io.eventsql.ReadFrom;
import io.eventsql.Settings;
import io.eventsql.internal.shard.Replica;
import io.eventsql.internal.shard.Shard;
import io.eventsql.internal.thread.ServiceThread;
import io.eventsql.internal.wake.WakeUp;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The fetchers of one shard: one for its primary, and one for its replica if it has one, so that a replica that does not answer
 * holds up none of those who do not read from it.
 *
 * @param ofReplica {@code null}: the shard has no replica
 */
record Fetchers(Fetcher ofPrimary, @Nullable Fetcher ofReplica) {
    static Fetchers start(
            Shard shard, @Nullable Replica replica, Settings settings, WakeUp wakeUp, Listeners listeners) {
        Fetcher ofPrimary = new Fetcher(shard, new FetchSchedule(settings.pollInterval()), listeners);
        Fetcher ofReplica = replica == null
                ? null
                : new Fetcher(shard, replica, new FetchSchedule(settings.pollInterval()), listeners);
        Fetchers fetchers = new Fetchers(ofPrimary, ofReplica);
        fetchers.all().forEach(fetcher -> {
            fetcher.start();
            wakeUp.register(shard, fetcher);
        });
        return fetchers;
    }

    private Stream<Fetcher> all() {
        return ofReplica == null ? Stream.of(ofPrimary) : Stream.of(ofPrimary, ofReplica);
    }

    /** Returns the fetcher for a consumer. */
    Fetcher of(ConsumerSpec spec) {
        return spec.readFrom() == ReadFrom.REPLICA && ofReplica != null ? ofReplica : ofPrimary;
    }

    void remove(ShardMember member) {
        all().forEach(fetcher -> fetcher.remove(member));
    }

    /** There may be something to fetch. */
    void signal() {
        all().forEach(fetcher -> fetcher.schedule().signal());
    }

    List<ServiceThread> threads() {
        return all().map(Fetcher::thread).toList();
    }

    void close(CloseDeadline deadline) throws InterruptedException {
        List<Fetcher> ending = all().toList();
        ending.forEach(Fetcher::beginClose);
        for (Fetcher fetcher : ending) {
            fetcher.awaitClosed(deadline);
        }
    }
}
