package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.eventsdb.EventsDb;
import io.eventsql.fault.ConsumerProcess.Mode;
import io.eventsql.fixture.Sql;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;

/**
 * A new stream with a publisher that goes on, and consumers whose members are processes. {@link #finish} waits until all
 * is handled, ends the members and checks what they did.
 */
final class ConsumerGroup implements AutoCloseable {
    private final EventsDb eventsDb;
    private final Path folder;
    private final HikariDataSource pool;
    private final EventSql eventSql;
    private final StreamSpec stream;
    private final Map<String, Mode> consumers;
    private final Map<String, String> options = new LinkedHashMap<>();
    private final Map<String, MemberProcess> members = new ConcurrentHashMap<>();
    private final SteadyLoad load;

    /**
     * @param stream must be new
     * @param consumers names and how they handle
     * @param tickMs an event for each partition so often
     */
    ConsumerGroup(EventsDb eventsDb, Path folder, StreamSpec stream, Map<String, Mode> consumers, long tickMs)
            throws SQLException {
        this.eventsDb = eventsDb;
        this.folder = folder;
        this.stream = stream;
        this.consumers = Map.copyOf(consumers);
        pool = Pools.pool(eventsDb, eventsDb.jdbcUrl(), config -> config.setConnectionTimeout(5_000));
        eventSql = EventSql.builder(pool)
                .settings(Settings.builder()
                        .publishTimeout(Duration.ofMinutes(3))
                        .networkTimeout(Duration.ofSeconds(5))
                        .build())
                .build();
        Sql.execute(pool, ConsumerProcess.TABLES.toArray(String[]::new));
        eventSql.createStream(stream);
        options.put("url", eventsDb.jdbcUrl());
        options.put("user", eventsDb.username());
        options.put("password", eventsDb.password());
        options.put("stream", stream.name());
        options.put("folder", folder.toString());
        options.put(
                "members",
                this.consumers.entrySet().stream()
                        .map(consumer -> consumer.getKey() + ":" + consumer.getValue())
                        .collect(Collectors.joining(",")));
        load = SteadyLoad.start(eventSql, stream, tickMs);
    }

    /** An option of all processes that are started from now on. */
    ConsumerGroup with(String option, Object value) {
        options.put(option, value.toString());
        return this;
    }

    HikariDataSource pool() {
        return pool;
    }

    EventSql eventSql() {
        return eventSql;
    }

    SteadyLoad load() {
        return load;
    }

    /** Starts a process; options as {@code name=value}. */
    MemberProcess begin(String name, String... more) throws IOException {
        Map<String, String> all = new LinkedHashMap<>(options);
        all.put("name", name);
        for (String option : more) {
            int equals = option.indexOf('=');
            all.put(option.substring(0, equals), option.substring(equals + 1));
        }
        MemberProcess member = MemberProcess.start(all);
        members.put(name, member);
        return member;
    }

    /** Starts a process and waits until it takes part. */
    MemberProcess start(String name, String... more) throws IOException, InterruptedException {
        MemberProcess member = begin(name, more);
        member.awaitLine("READY");
        return member;
    }

    private String consumer() {
        assertThat(consumers).hasSize(1);
        return consumers.keySet().iterator().next();
    }

    HandledRecords records() {
        return records(consumer());
    }

    HandledRecords records(String consumer) {
        try {
            return HandledRecords.read(folder.resolve(consumer));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    Effects effects() throws SQLException {
        return Effects.read(pool, consumer());
    }

    /** Waits for a condition; a wide deadline, so that only a hang fails it. */
    void awaitThat(String what, Callable<Boolean> condition) {
        await().alias(what)
                .atMost(MemberProcess.DEADLINE)
                .pollInterval(Duration.ofMillis(50))
                .ignoreExceptionsMatching(e -> e instanceof SQLException)
                .conditionEvaluationListener(evaluated -> {
                    if (!evaluated.isSatisfied() && evaluated.getRemainingTimeInMS() <= 50) {
                        System.out.println("gave up waiting: " + what + "\n" + this);
                    }
                })
                .until(condition);
    }

    /** Which partitions each living process holds, by the database. */
    Map<String, Set<Integer>> shares(String consumer) throws SQLException {
        Map<String, Set<Integer>> shares = new LinkedHashMap<>();
        for (String row : Sql.query(
                pool,
                "SELECT m.name || ' ' || coalesce(p.partition, -1)"
                        + " FROM eventsql.consumer c JOIN eventsql.stream s USING (stream_id)"
                        + " JOIN eventsql.consumer_member m USING (consumer_id)"
                        + " LEFT JOIN eventsql.consumer_partition p ON p.consumer_id = m.consumer_id"
                        + " AND p.member_id = m.member_id"
                        + " WHERE s.name = ? AND c.name = ? AND m.expires_at > clock_timestamp() ORDER BY 1",
                stream.name(),
                consumer)) {
            String[] fields = row.split(" ", -1);
            Set<Integer> partitions = shares.computeIfAbsent(fields[0], name -> new TreeSet<>());
            if (!fields[1].equals("-1")) {
                partitions.add(Integer.parseInt(fields[1]));
            }
        }
        return shares;
    }

    /** The partitions that a process holds, as it says itself. */
    Set<Integer> partitionsOf(MemberProcess member) {
        Set<Integer> partitions = new TreeSet<>();
        for (String line : member.lines()) {
            String[] fields = line.split(" ", -1);
            if (fields[0].equals("ASSIGNED") && fields[1].equals(consumer())) {
                partitions.add(Integer.parseInt(fields[2]));
            } else if (fields[0].equals("REVOKED") && fields[1].equals(consumer())) {
                partitions.remove(Integer.parseInt(fields[2]));
            }
        }
        return partitions;
    }

    /** Waits until so many members hold all partitions, each as many as it can that is fair. */
    void awaitFair(int count) {
        int floor = stream.partitions() / count;
        int ceil = (stream.partitions() + count - 1) / count;
        awaitThat(
                count + " members share the partitions",
                () -> consumers.keySet().stream().allMatch(consumer -> {
                    try {
                        Map<String, Set<Integer>> shares = shares(consumer);
                        return shares.size() == count
                                && shares.values().stream()
                                        .allMatch(held -> held.size() == floor || held.size() == ceil)
                                && shares.values().stream().mapToInt(Set::size).sum() == stream.partitions();
                    } catch (SQLException e) {
                        return false;
                    }
                }));
    }

    /** Waits until a process has handled events published from now on. */
    void awaitHandlesMore(MemberProcess member) {
        int before = records().handledBy(member.name()).size();
        awaitThat(
                member.name() + " handles events",
                () -> records().handledBy(member.name()).size() > before + 10);
    }

    /** Waits until the consumers have handled what is stored. */
    void awaitDrained() {
        for (String consumer : consumers.keySet()) {
            awaitThat(
                    "consumer " + consumer + " has handled everything",
                    () -> eventSql.positions(stream.name(), consumer).stream().allMatch(p -> p.lag() == 0));
        }
    }

    /** Ends the load, waits until everything is handled, ends the members, and compares. */
    List<Ledger.Stored> finish() throws Exception {
        Ledger ledger = load.stop();
        List<Ledger.Stored> stored = Ledger.read(stream.name(), List.of(pool));
        ledger.verify(stored);
        awaitDrained();
        List<MemberProcess> alive =
                members.values().stream().filter(MemberProcess::isAlive).toList();
        for (MemberProcess member : alive) {
            member.beginClose();
        }
        for (MemberProcess member : alive) {
            member.awaitClosed();
        }
        for (Map.Entry<String, Mode> consumer : consumers.entrySet()) {
            if (consumer.getValue().isTransactional()) {
                Effects.read(pool, consumer.getKey()).verify(stored);
            } else {
                records(consumer.getKey()).verify(stored, consumer.getValue());
            }
            assertThat(shares(consumer.getKey()))
                    .as("members after the last has closed")
                    .isEmpty();
        }
        return stored;
    }

    /** Lines with this beginning that any process printed. */
    List<String> printed(String prefix) {
        List<String> lines = new ArrayList<>();
        members.values().forEach(member -> lines.addAll(member.lines(prefix)));
        return lines;
    }

    /** Ends everything, whatever it does. */
    @Override
    public void close() {
        members.values().forEach(MemberProcess::destroy);
        eventSql.close(Duration.ZERO);
        pool.close();
    }

    @Override
    public String toString() {
        StringBuilder text = new StringBuilder();
        for (String consumer : consumers.keySet()) {
            text.append(consumer).append(": ");
            try {
                text.append(shares(consumer)).append('\n');
                eventSql.consumer(stream.name(), consumer)
                        .state()
                        .forEach(state -> text.append(state).append('\n'));
            } catch (SQLException | RuntimeException e) {
                text.append(e).append('\n');
            }
        }
        members.values().forEach(member -> text.append(member).append('\n'));
        return text.toString();
    }
}
