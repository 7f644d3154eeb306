package io.eventsql.fault;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.ConsumerListener;
import io.eventsql.ConsumerPartition;
import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.EventSqlException;
import io.eventsql.RetryPolicy;
import io.eventsql.Settings;
import io.eventsql.ShardInfo;
import io.eventsql.StoredEvent;
import io.eventsql.TransactionBoundary;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The main class of a process with members of one or more consumers of a stream. It may be killed, frozen and cut off at
 * any moment; on the command {@code CLOSE} and when its standard input ends, it closes in order. After a {@code CLOSE} it
 * can be told to run members again, of another test.
 *
 * <p>Plain handlers append a line for each event to a file that all members of the consumer share, each in one write, so
 * that the file's order is the order in which the events were handled; the file also says when a partition was assigned.
 * Transactional handlers insert a row for each event through the connection they get; before that they count, in a row
 * for each key, how many events of the key were handled.
 *
 * <p>What tests wait for is printed: {@code READY}, {@code ASSIGNED <consumer> <partition> <offset>}, {@code REVOKED
 * <consumer> <partition> <reason>}, {@code TIMEOUT <consumer> <partition>}, {@code FAILED <consumer> <error>}, {@code
 * STOPPED <consumer> <partition> <error>}, {@code HOLDING <partition> <value>}, {@code CLOSED <in time>}, {@code DONE}.
 * The command {@code HOLD} on standard input lets the next handled event wait for {@code GO}, in the middle of its
 * handler: a transactional one has written, and holds locks, then.
 */
final class ConsumerProcess {
    /** How a member handles events. */
    enum Mode {
        SINGLE,
        BATCH,
        KEYS,
        TRANSACTIONAL,
        TRANSACTIONAL_BATCH,
        /** In transactions that somebody else begins and commits, as a framework does. */
        BOUNDARY;

        private static final Set<Mode> ONLY_IF_ALL = EnumSet.of(BATCH, TRANSACTIONAL_BATCH);

        /** Those that tests of every mode run with: the batches only with {@code -Deventsql.test.allModes=true}. */
        static Stream<Mode> tested() {
            boolean all = Boolean.getBoolean("eventsql.test.allModes");
            return Arrays.stream(values()).filter(mode -> all || !ONLY_IF_ALL.contains(mode));
        }

        /** Those of them without a transaction. */
        static Stream<Mode> testedPlain() {
            return tested().filter(mode -> !mode.isTransactional());
        }

        /** Those of them with one. */
        static Stream<Mode> testedTransactional() {
            return tested().filter(Mode::isTransactional);
        }

        boolean isTransactional() {
            return this == TRANSACTIONAL || this == TRANSACTIONAL_BATCH || this == BOUNDARY;
        }

        /** How many events a handler may have at hand at the same moment. */
        int atHandMax() {
            return switch (this) {
                case SINGLE, TRANSACTIONAL, BOUNDARY -> 1;
                case KEYS -> KEY_CONCURRENCY;
                case BATCH, TRANSACTIONAL_BATCH -> PAGE_EVENTS;
            };
        }
    }

    static final int KEY_CONCURRENCY = 8;
    static final int PAGE_EVENTS = 20;
    /** The tables of the transactional handlers; {@code effect} has no constraint, so that doubled effects show. */
    static final List<String> TABLES = List.of(
            "DROP TABLE IF EXISTS public.handled_key, public.effect",
            "CREATE TABLE public.handled_key (consumer text, key text, events int, PRIMARY KEY (consumer, key))",
            "CREATE TABLE public.effect (consumer text, process text, partition int, event_offset bigint, key text,"
                    + " value text, key_order int)");

    private static final String EFFECT = "WITH counted AS ("
            + " INSERT INTO public.handled_key AS h VALUES (?, ?, 1)"
            + " ON CONFLICT (consumer, key) DO UPDATE SET events = h.events + 1 RETURNING h.*)"
            + " INSERT INTO public.effect SELECT consumer, ?, ?, ?, key, ?, events FROM counted";

    private final Map<String, String> options;
    private final String name;
    private final Map<String, FileChannel> records = new ConcurrentHashMap<>();
    private final AtomicBoolean holdNext = new AtomicBoolean();
    private volatile CountDownLatch held = new CountDownLatch(0);
    private final CountDownLatch closing = new CountDownLatch(1);

    private ConsumerProcess(Map<String, String> options) {
        this.options = options;
        this.name = options.getOrDefault("name", "");
    }

    /**
     * Runs members at the command {@code RUN}, with options after it, each behind a tab: {@code option=value}. {@code url},
     * {@code user}, {@code password}, {@code stream}, {@code name}, {@code folder} (of the shared files) and {@code members}
     * ({@code <consumer>:<mode>,…}) are required; the others have the defaults seen below.
     */
    public static void main(String[] args) throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        ConsumerProcess current = new ConsumerProcess(Map.of());
        for (String command = commands.readLine(); command != null; command = commands.readLine()) {
            if (command.startsWith("RUN\t")) {
                current = new ConsumerProcess(Stream.of(command.split("\t", -1))
                        .skip(1)
                        .map(option -> option.split("=", 2))
                        .collect(Collectors.toMap(option -> option[0], option -> option[1])));
                Thread.ofPlatform().name("member").start(current::runOrExit);
            } else {
                current.obey(command);
            }
        }
        current.obey("CLOSE");
    }

    private long number(String option, long otherwise) {
        return Long.parseLong(options.getOrDefault(option, Long.toString(otherwise)));
    }

    private void runOrExit() {
        try {
            run();
        } catch (Throwable e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    private void run() throws Exception {
        Settings settings = Settings.builder()
                .lease(Duration.ofMillis(number("leaseMs", 30_000)))
                .heartbeat(Duration.ofMillis(number("heartbeatMs", 1_000)))
                .networkTimeout(Duration.ofMillis(number("networkTimeoutMs", 5_000)))
                .migrateSchema(number("migrate", 1) == 1)
                .build();
        try (HikariDataSource pool =
                Pools.pool(options.get("url"), options.get("user"), options.get("password"), config -> {
                    config.setConnectionTimeout(5_000);
                    config.setMaximumPoolSize((int) number("connections", 20));
                })) {
            EventSql eventSql = open(pool, settings);
            for (String member : options.get("members").split(",", -1)) {
                String[] consumerAndMode = member.split(":", 2);
                subscribeWhenPossible(eventSql, consumerAndMode[0], Mode.valueOf(consumerAndMode[1]));
            }
            print("READY");
            closing.await();
            print("CLOSED " + eventSql.close(Duration.ofMillis(number("closeMs", 20_000))));
        }
        for (FileChannel file : records.values()) {
            file.close();
        }
        print("DONE");
    }

    private void obey(String command) {
        switch (command) {
            case "HOLD" -> {
                held = new CountDownLatch(1);
                holdNext.set(true);
            }
            case "GO" -> held.countDown();
            case "CLOSE" -> closing.countDown();
            default -> throw new IllegalArgumentException(command);
        }
    }

    /** Its way to the database may be cut just now. */
    private EventSql open(HikariDataSource pool, Settings settings) throws InterruptedException {
        while (true) {
            try {
                return EventSql.builder(pool)
                        .settings(settings)
                        .listener(new Printer())
                        .build();
            } catch (EventSqlException e) {
                for (Throwable cause = e; cause != null; cause = cause.getCause()) {
                    print("FAILED to open " + cause.toString().replace('\n', ' '));
                }
                TimeUnit.MILLISECONDS.sleep(200);
            }
        }
    }

    /** The same holds for the question whether the stream is there. */
    private void subscribeWhenPossible(EventSql eventSql, String consumer, Mode mode)
            throws IOException, InterruptedException {
        while (true) {
            try {
                subscribe(eventSql, consumer, mode);
                return;
            } catch (EventSqlException e) {
                print("FAILED to subscribe " + e.toString().replace('\n', ' '));
                TimeUnit.MILLISECONDS.sleep(200);
            }
        }
    }

    private void subscribe(EventSql eventSql, String consumer, Mode mode) throws IOException {
        ConsumerSpec spec = ConsumerSpec.of(options.get("stream"), consumer)
                .withPageEvents(PAGE_EVENTS)
                .withMaxPartitions((int) number("maxPartitions", Integer.MAX_VALUE))
                .withConcurrency((int) number("concurrency", ConsumerSpec.DEFAULT_CONCURRENCY))
                .withHandlerTimeout(Duration.ofMillis(number("handlerTimeoutMs", 300_000)))
                .withRetry(RetryPolicy.defaults()
                        .withMaxAttempts((int) number("maxAttempts", RetryPolicy.UNLIMITED))
                        .withDelay(Duration.ofMillis(20), Duration.ofMillis(500)));
        records.put(
                consumer,
                FileChannel.open(
                        Path.of(options.get("folder"), consumer),
                        StandardOpenOption.CREATE,
                        StandardOpenOption.APPEND));
        switch (mode) {
            case SINGLE -> eventSql.subscribe(spec, event -> handle(consumer, event));
            case KEYS -> eventSql.subscribe(spec.withKeyConcurrency(KEY_CONCURRENCY), event -> handle(consumer, event));
            case BATCH ->
                eventSql.subscribeBatch(spec, events -> {
                    for (StoredEvent event : events) {
                        handle(consumer, event);
                    }
                });
            case TRANSACTIONAL ->
                eventSql.subscribeTransactional(spec, (event, connection) -> handle(consumer, event, connection));
            case TRANSACTIONAL_BATCH ->
                eventSql.subscribeTransactionalBatch(spec, (events, connection) -> {
                    for (StoredEvent event : events) {
                        handle(consumer, event, connection);
                    }
                });
            case BOUNDARY ->
                eventSql.subscribeTransactional(
                        spec,
                        ConsumerProcess::inTransaction,
                        (event, connection) -> handle(consumer, event, connection));
        }
    }

    private static void inTransaction(ShardInfo shard, TransactionBoundary.Work work) throws Exception {
        try (Connection connection = shard.dataSource().getConnection()) {
            connection.setAutoCommit(false);
            try {
                work.run(connection);
                connection.commit();
            } catch (Throwable e) {
                connection.rollback();
                throw e;
            } finally {
                connection.setAutoCommit(true);
            }
        }
    }

    private void handle(String consumer, StoredEvent event) throws IOException, InterruptedException {
        pauseOrHold(event);
        record(
                consumer,
                "H " + name + " " + event.partition() + " " + event.offset() + " " + event.text() + " "
                        + System.nanoTime());
    }

    private void handle(String consumer, StoredEvent event, Connection connection)
            throws SQLException, InterruptedException {
        try (PreparedStatement statement = connection.prepareStatement(EFFECT)) {
            statement.setString(1, consumer);
            statement.setString(2, event.key() == null ? "-" + event.partition() : event.key());
            statement.setString(3, name);
            statement.setInt(4, event.partition());
            statement.setLong(5, event.offset());
            statement.setString(6, event.text());
            statement.executeUpdate();
        }
        pauseOrHold(event);
    }

    private void pauseOrHold(StoredEvent event) throws InterruptedException {
        long pauseMs = number("pauseMs", 0);
        if (pauseMs > 0) {
            TimeUnit.MILLISECONDS.sleep(pauseMs);
        }
        if (holdNext.compareAndSet(true, false)) {
            print("HOLDING " + event.partition() + " " + event.text());
            held.await();
        }
    }

    private void record(String consumer, String line) throws IOException {
        records.get(consumer).write(ByteBuffer.wrap((line + "\n").getBytes(StandardCharsets.US_ASCII)));
    }

    private static void print(String line) {
        System.out.println(line);
        System.out.flush();
    }

    private final class Printer implements ConsumerListener {
        private final AtomicLong failures = new AtomicLong();

        @Override
        public void partitionAssigned(ConsumerPartition partition, long nextOffset) {
            String text = name + " " + partition.partition() + " " + nextOffset;
            try {
                ConsumerProcess.this.record(partition.consumer(), "A " + text + " - " + System.nanoTime());
            } catch (IOException e) {
                print("FAILED " + partition.consumer() + " " + e);
            }
            print("ASSIGNED " + partition.consumer() + " " + partition.partition() + " " + nextOffset);
        }

        @Override
        public void partitionRevoked(ConsumerPartition partition, Reason reason) {
            print("REVOKED " + partition.consumer() + " " + partition.partition() + " " + reason);
        }

        @Override
        public void handlerTimedOut(ConsumerPartition partition, Duration runningFor) {
            print("TIMEOUT " + partition.consumer() + " " + partition.partition());
        }

        @Override
        public void handlerFailed(StoredEvent event, String consumer, int attempt, Throwable error, boolean willRetry) {
            if (failures.incrementAndGet() <= 1_000) {
                print("FAILED " + consumer + " " + willRetry + " "
                        + error.toString().replace('\n', ' '));
            }
        }

        @Override
        public void partitionStopped(ConsumerPartition partition, long nextOffset, String error) {
            print("STOPPED " + partition.consumer() + " " + partition.partition() + " " + error.replace('\n', ' '));
        }
    }
}
