package io.eventsql.version;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import io.eventsql.Event;
import io.eventsql.EventNotStoredException;
import io.eventsql.EventOutcomeUnknownException;
import io.eventsql.EventPublisher;
import io.eventsql.EventSql;
import io.eventsql.ExpectedVersion;
import io.eventsql.VersionConflictException;
import io.eventsql.fixture.check.Ledger;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.IntStream;

/**
 * Writers that compete for few keys: each publishes an event that says which version it expects to give its key, and after a
 * conflict tries again with the version that the key had. Afterwards the versions that the stored events say must be those that
 * they have.
 */
final class CompetingWriters {
    private final String stream;
    private final int keys;
    private final AtomicLongArray successes;
    private final AtomicLong conflicts = new AtomicLong();
    private final Set<String> acknowledged = ConcurrentHashMap.newKeySet();
    private final Set<String> unknown = ConcurrentHashMap.newKeySet();
    private final List<Thread> threads = new ArrayList<>();
    private final List<Throwable> failures = new ArrayList<>();
    private volatile boolean stopped;

    CompetingWriters(String stream, int keys, int writers) {
        this.stream = stream;
        this.keys = keys;
        this.successes = new AtomicLongArray(writers);
    }

    /** Starts the writers, which use the instances in turn. */
    void start(List<EventSql> instances, Random random) {
        for (int writer = 0; writer < successes.length(); writer++) {
            int number = writer;
            EventSql eventSql = instances.get(writer % instances.size());
            Random own = new Random(random.nextLong());
            threads.add(Thread.ofVirtual().start(() -> {
                try {
                    write(eventSql, number, own);
                } catch (Throwable e) {
                    synchronized (failures) {
                        failures.add(e);
                    }
                }
            }));
        }
    }

    private void write(EventSql eventSql, int writer, Random random) {
        EventPublisher publisher = eventSql.publisher();
        long[] versions = new long[keys];
        for (int i = 0; !stopped; i++) {
            int key = random.nextInt(keys);
            boolean isDone = false;
            while (!isDone && !stopped) {
                // What the event says: its key, the version that it gives the key, and what makes it unique.
                String text = "k" + key + " " + (versions[key] + 1) + " w" + writer + "-" + i;
                try {
                    publisher.publish(stream, Event.ofText("k" + key, text), ExpectedVersion.of(versions[key]));
                    acknowledged.add(text);
                    successes.incrementAndGet(writer);
                    versions[key]++;
                    isDone = true;
                } catch (VersionConflictException e) {
                    conflicts.incrementAndGet();
                    assertThat(e.actualVersion()).isNotEqualTo(versions[key]);
                    versions[key] = e.actualVersion();
                } catch (EventOutcomeUnknownException e) {
                    unknown.add(text);
                    isDone = true; // the next event for the key finds out what version it has
                } catch (EventNotStoredException e) {
                    isDone = true;
                }
            }
        }
    }

    /** Stops the writers when each of them has succeeded, or one has failed. */
    void stop() throws InterruptedException {
        await().alias("each writer succeeds")
                .atMost(Duration.ofSeconds(120))
                .until(() -> hasEachSucceeded() || hasFailure());
        stopped = true;
        for (Thread thread : threads) {
            thread.join();
        }
        assertThat(failures).isEmpty();
    }

    long successes() {
        return IntStream.range(0, successes.length()).mapToLong(successes::get).sum();
    }

    private boolean hasFailure() {
        synchronized (failures) {
            return !failures.isEmpty();
        }
    }

    private boolean hasEachSucceeded() {
        return IntStream.range(0, successes.length()).allMatch(writer -> successes.get(writer) > 0);
    }

    /** Verifies that the events are those acknowledged, and some of the unknown ones, each with the version that it says. */
    void verify(EventSql eventSql, List<Ledger.Stored> stored) {
        Set<String> texts = new HashSet<>();
        Map<String, Long> versions = new HashMap<>();
        for (Ledger.Stored event : stored) {
            String text = event.value();
            String[] words = text.split(" ");
            assertThat(versions.merge(words[0], 1L, Long::sum))
                    .as("the version of the event %s", text)
                    .isEqualTo(Long.parseLong(words[1]));
            assertThat(texts.add(text)).as("%s is stored once", text).isTrue();
        }
        // Of many events: AssertJ's own comparisons of collections compare each with each.
        assertThat(acknowledged.stream().filter(text -> !texts.contains(text)))
                .as("acknowledged, but not stored")
                .isEmpty();
        assertThat(texts.stream().filter(text -> !acknowledged.contains(text) && !unknown.contains(text)))
                .as("stored, but neither acknowledged nor unknown")
                .isEmpty();
        versions.forEach(
                (key, version) -> assertThat(eventSql.keyVersion(stream, key)).isEqualTo(version));
    }

    @Override
    public String toString() {
        return successes() + " publishes succeeded, " + conflicts + " conflicts, " + unknown.size() + " unknown";
    }
}
