package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fixture.HandlerMode;
import io.eventsql.fixture.Seeds;
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
 * Goal: whatever happens to the members of two consumers, one plain and one exactly-once, in whatever order: every
 * acknowledged event is handled, in order per key, and each effect happens exactly once.
 *
 * <p>Method: 3 to 5 member processes, each of both consumers and behind a proxy of its own, are started, closed, killed,
 * frozen, thawed, cut off for a moment and cut from the network at random, while a publisher goes on. At the end all are
 * thawed, what is left is handled, and everything is compared ({@link HandledRecords}, {@link Effects}).
 *
 * <p>{@code -Deventsql.test.chaosSeconds=N} goes on for N seconds instead of 15; {@code -Deventsql.test.seed=N} repeats
 * the choices, though not their moments.
 */
class ConsumerChaosIT {
    private static final long SECONDS = Long.getLong("eventsql.test.chaosSeconds", 15);
    private static final int PARTITIONS = 12;
    private static final int MEMBERS_MIN = 3;
    private static final int MEMBERS_MAX = 5;
    private static final long LEASE_MS = 2_000;
    private static final long PAUSE_MAX_MS = 1_500;

    @TempDir
    private Path folder;

    private final Map<String, Integer> done = new TreeMap<>();
    private final List<Victim> victims = new ArrayList<>();
    private final List<Victim> dead = new ArrayList<>();
    private int started;

    /** A process and its way to the database. */
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
    void members_hurtAtRandom_everyEventIsHandledAndEveryEffectHappensOnce() throws Exception {
        Random random = Seeds.random("ConsumerChaosIT");
        HandlerMode plain = pick(random, List.of(HandlerMode.SINGLE, HandlerMode.BATCH, HandlerMode.KEYS));
        HandlerMode once = pick(random, List.of(HandlerMode.TRANSACTIONAL, HandlerMode.TRANSACTIONAL_BATCH));
        System.out.println("ConsumerChaosIT: " + plain + " and " + once + " for " + SECONDS + " s");
        try (EventsDb eventsDb = EventsDb.start();
                ConsumerGroup group = new ConsumerGroup(
                                eventsDb,
                                folder,
                                StreamSpec.of("chaos").withPartitions(PARTITIONS),
                                Map.of("plain", plain, "once", once),
                                60)
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
                    hurt(random, group, eventsDb);
                }
                for (Victim victim : victims) {
                    heal(victim);
                }
                System.out.println("ConsumerChaosIT did " + done);
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

    private void hurt(Random random, ConsumerGroup group, EventsDb eventsDb) throws Exception {
        Victim victim = pick(random, victims);
        String what;
        switch (random.nextInt(10)) {
            case 0, 1 -> {
                what = "kill";
                victim.process.kill();
                victims.remove(victim);
                // Behind a black hole the server keeps a dead process's connections; for a while, as there are not so
                // many.
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
        done.merge(what, 1, Integer::sum);
        int least = MEMBERS_MIN + random.nextInt(MEMBERS_MAX - MEMBERS_MIN + 1);
        while (victims.size() < MEMBERS_MIN || (victims.size() < least && random.nextInt(3) == 0)) {
            start(group, eventsDb);
            done.merge("start", 1, Integer::sum);
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
