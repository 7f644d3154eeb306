package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.SharedServerDatabase;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.check.Effects;
import io.eventsql.fixture.check.HandledRecords;
import io.eventsql.fixture.process.ConsumerGroup;
import io.eventsql.fixture.process.MemberProcess;
import io.eventsql.fixture.proxy.FaultProxy;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Chaos test. Goal: whatever happens to the members of two consumers, one plain and one exactly-once, every acknowledged
 * event is handled in order per key, and each effect happens exactly once.
 *
 * <p>Method: 2 or 3 member processes, each with a member of both consumers and its own proxy, are started, closed, killed,
 * frozen, thawed, disconnected and cut off from the network at random while a publisher runs. At the end all are thawed, the
 * remaining events are handled, and everything is compared ({@link HandledRecords}, {@link Effects}).
 *
 * <p>{@code -Deventsql.test.chaosSeconds=N} runs for N seconds instead of 10, with 3 to 5 processes and at more than twice the
 * rate; {@code -Deventsql.test.seed=N} repeats the choices, but not their timing.
 */
class ConsumerChaosIT {
    private static final long SHORT_RUN_SECONDS = 10;
    private static final long SECONDS = Long.getLong("eventsql.test.chaosSeconds", SHORT_RUN_SECONDS);
    private static final boolean LONG_RUN = SECONDS > SHORT_RUN_SECONDS;
    /** From one event of a partition to the next. */
    private static final long TICK_MS = LONG_RUN ? 60 : 150;

    private static final int PARTITIONS = LONG_RUN ? 12 : 6;
    private static final int MEMBERS_MIN = LONG_RUN ? 3 : 2;
    private static final int MEMBERS_MAX = LONG_RUN ? 5 : 3;
    private static final long LEASE_MS = 2_000;
    private static final long PAUSE_MAX_MS = 1_500;

    @TempDir
    private Path folder;

    private final Map<String, Integer> injected = new TreeMap<>();
    private final List<Victim> victims = new ArrayList<>();
    private final List<Victim> dead = new ArrayList<>();
    private int started;

    /** A member process and the proxy between it and the database. */
    private static final class Victim {
        final MemberProcess process;
        final FaultProxy proxy;
        boolean frozen;

        Victim(MemberProcess process, FaultProxy proxy) {
            this.process = process;
            this.proxy = proxy;
        }
    }

    @Test
    void members_randomFaults_everyEventIsHandledAndEveryEffectHappensOnce() throws Exception {
        Random random = Seeds.random("ConsumerChaosIT");
        HandlerMode plain = pick(random, List.of(HandlerMode.SINGLE, HandlerMode.BATCH, HandlerMode.KEYS));
        HandlerMode once = pick(random, List.of(HandlerMode.TRANSACTIONAL, HandlerMode.TRANSACTIONAL_BATCH));
        System.out.println("ConsumerChaosIT: " + plain + " and " + once + " for " + SECONDS + " s");
        try (EventsDb eventsDb = SharedServerDatabase.create();
                ConsumerGroup group = new ConsumerGroup(
                                eventsDb,
                                folder,
                                TestStreams.of("chaos").withPartitions(PARTITIONS),
                                Map.of("plain", plain, "once", once),
                                TICK_MS)
                        .with("leaseMs", LEASE_MS)
                        .with("heartbeatMs", 400)
                        .with("networkTimeoutMs", 3_000)) {
            try {
                long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
                while (victims.size() < MEMBERS_MIN) {
                    start(group, eventsDb);
                }
                while (System.nanoTime() - end < 0) {
                    TimeUnit.MILLISECONDS.sleep(random.nextLong(PAUSE_MAX_MS));
                    injectFault(random, group, eventsDb);
                }
                for (Victim victim : victims) {
                    heal(victim);
                }
                System.out.println("ConsumerChaosIT injected " + injected);
                group.awaitFair(victims.size());
                int stored = group.finish().size();
                System.out.println("ConsumerChaosIT: " + stored + " events, handled "
                        + group.records("plain").handled().size() + " times by the plain consumer");
                assertThat(group.printed("STOPPED")).isEmpty();
            } finally {
                victims.forEach(victim -> victim.proxy.close());
                dead.forEach(victim -> victim.proxy.close());
            }
        }
    }

    private static <T> T pick(Random random, List<T> from) {
        return from.get(random.nextInt(from.size()));
    }

    private void start(ConsumerGroup group, EventsDb eventsDb) throws IOException {
        FaultProxy proxy = FaultProxy.to(eventsDb.jdbcUrl());
        victims.add(new Victim(group.begin("m" + ++started, "url=" + proxy.jdbcUrl()), proxy));
    }

    private void injectFault(Random random, ConsumerGroup group, EventsDb eventsDb) throws Exception {
        Victim victim = pick(random, victims);
        String what;
        switch (random.nextInt(10)) {
            case 0, 1 -> {
                what = "kill";
                victim.process.kill();
                victims.remove(victim);
                // Behind a blackhole the server keeps the connections of a dead process. The proxy is closed at the
                // next
                // kill, because connections are limited.
                dead.forEach(earlier -> earlier.proxy.close());
                dead.clear();
                dead.add(victim);
            }
            case 2 -> {
                what = "close";
                heal(victim);
                victim.process.awaitLine("READY");
                victim.process.close();
                victims.remove(victim);
                victim.proxy.close();
            }
            case 3, 4 -> {
                what = "freeze";
                victim.frozen = true;
                victim.process.freeze();
            }
            case 5, 6 -> {
                what = "thaw";
                for (Victim frozen : victims) {
                    thaw(frozen);
                }
            }
            case 7 -> {
                what = "cut";
                victim.proxy.cut();
            }
            case 8 -> {
                what = "blackhole";
                victim.proxy.blackhole();
            }
            default -> {
                what = "heal";
                victims.forEach(one -> one.proxy.heal());
            }
        }
        injected.merge(what, 1, Integer::sum);
        int target = MEMBERS_MIN + random.nextInt(MEMBERS_MAX - MEMBERS_MIN + 1);
        while (victims.size() < MEMBERS_MIN || (victims.size() < target && random.nextInt(3) == 0)) {
            start(group, eventsDb);
            injected.merge("start", 1, Integer::sum);
        }
    }

    private static void heal(Victim victim) throws Exception {
        thaw(victim);
        victim.proxy.heal();
    }

    private static void thaw(Victim victim) throws Exception {
        if (victim.frozen) {
            victim.frozen = false;
            victim.process.thaw();
        }
    }
}
