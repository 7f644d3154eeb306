package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.ConsumerSpec;
import io.eventsql.EventSql;
import io.eventsql.StoredEvent;
import io.eventsql.StreamSpec;
import io.eventsql.Subscription;
import io.eventsql.benchmark.event.BenchmarkEvent;
import io.eventsql.benchmark.event.EpochMicros;
import io.eventsql.runner.result.JsonFiles;
import io.eventsql.runner.result.RunnerResult;
import io.eventsql.runner.testing.ResultSchema;
import io.eventsql.runner.testing.StubApp;
import io.eventsql.runner.testing.TestDatabase;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.SQLException;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;

/** Runs the command with two real databases, a consumer of their stream, and a stub app for the barrier. */
@Timeout(120)
class PublishCommandIT {
    private static final long POLL_NANOS = Duration.ofMillis(10).toNanos();

    private static List<TestDatabase> databases;
    private static EventSql eventSql;

    @TempDir
    private Path folder;

    @BeforeAll
    static void createDatabases() {
        databases = List.of(TestDatabase.create(), TestDatabase.create());
        eventSql = EventSql.builder(
                        databases.stream().map(TestDatabase::dataSource).toList())
                .build();
    }

    @AfterAll
    static void dropDatabases() throws SQLException {
        eventSql.close();
        for (TestDatabase database : databases) {
            database.close();
        }
    }

    @Test
    void publish_atARateWithoutKeys_usesThePreferredShardAndIsConsumed() throws IOException {
        Map<String, String> environment = Map.of(
                "WARMUP_SECONDS",
                "1",
                "EVENTS_RATE",
                "1000",
                "EVENTS_TO_PUBLISH",
                "1500",
                "RUNNER_NUMBER",
                "1",
                "PROCESSES",
                "app=" + ProcessHandle.current().pid());

        List<StoredEvent> events = publish("at_a_rate", environment);

        int secondShard = eventSql.shards().stream()
                .filter(shard -> shard.dataSource().equals(databases.get(1).dataSource()))
                .findFirst()
                .orElseThrow()
                .number();
        assertThat(events).hasSize(2_500).allMatch(event -> event.shard() == secondShard && event.key() == null);
        assertEachNumberOnce(events, 1_500);
        RunnerResult result = result();
        assertThat(result.measured().eventsPublished()).isEqualTo(1_500);
        assertThat(result.warmupEvents()).isEqualTo(1_000);
        assertThat(result.failedEvents()).isZero();
        assertThat(result.ending().succeeded()).isTrue();
        assertThat(result.measured().publishLatencyMicros().getTotalCount()).isEqualTo(1_500);
        assertThat(result.measured().publishRate()).isBetween(500.0, 1_001.0);
        assertThat(result.series().seconds().publishRate().stream()
                        .mapToDouble(Double::doubleValue)
                        .sum())
                .isEqualTo(1_500);
        assertThat(result.series().resources().columns()).containsKeys("runner.cpu_cores", "app.cpu_cores");
        assertThat(result.shards()).hasSize(2).allSatisfy(shard -> {
            assertThat(shard.fsync()).isEqualTo("on");
            assertThat(shard.synchronousCommit()).isEqualTo("on");
            assertThat(shard.serverVersion()).isNotEmpty();
        });
    }

    @Test
    void publish_untilWarm_endsTheWarmupWithTheOtherRunners() throws IOException {
        // No compilation time can be low enough in a JVM that runs tests, so the longest time ends the warm-up.
        Map<String, String> environment = Map.of(
                "WARMUP_SECONDS", "1", "WARMUP_MAX_SECONDS", "2", "EVENTS_RATE", "500", "EVENTS_TO_PUBLISH", "500");

        List<StoredEvent> events = publish("until_warm", environment);

        assertEachNumberOnce(events, 500);
        RunnerResult result = result();
        assertThat(result.warmupEvents()).isGreaterThan(500);
        assertThat(result.jvms().warmup().untilWarm()).isTrue();
        assertThat(result.jvms().warmup().seconds()).isGreaterThan(1);
        assertThat(result.jvms().measuredCompilation().runnerMs()).isNotNegative();
        assertThat(result.jvms().appOptions()).containsExactly("-Xmx2g");
    }

    @Test
    void publish_asFastAsPossibleWithKeysAndBatches_keepsOrderPerKeyOnBothShards() throws IOException {
        Map<String, String> environment = Map.of(
                "WARMUP_SECONDS",
                "0",
                "EVENTS_RATE",
                "0",
                "EVENTS_TO_PUBLISH",
                "5000",
                "EVENTS_BATCH_SIZE",
                "7",
                "CALLERS",
                "5",
                "KEYED",
                "true",
                "KEYS",
                "40",
                "ASYNC",
                "true");

        List<StoredEvent> events = publish("with_keys", environment);

        assertEachNumberOnce(events, 5_000);
        assertThat(events).extracting(StoredEvent::shard).contains(0, 1);
        Map<String, Long> lastNumber = new HashMap<>();
        for (StoredEvent event : events) {
            BenchmarkEvent decoded = BenchmarkEvent.decode(event.value());
            Long before = lastNumber.put(event.key(), decoded.number());
            assertThat(decoded.number()).as(event.key()).isGreaterThan(before == null ? -1 : before);
        }
        assertThat(result().measured().eventsPublished()).isEqualTo(5_000);
    }

    @Test
    void publish_twoMembers_startsWhenEachHasItsShare() {
        eventSql.createStream(StreamSpec.of("two_members").withPartitions(3));
        ConsumerSpec consumer = ConsumerSpec.of("two_members", "app");
        Queue<StoredEvent> first = new ConcurrentLinkedQueue<>();
        Queue<StoredEvent> second = new ConcurrentLinkedQueue<>();
        Map<String, String> environment = environment(
                "two_members",
                Map.of("WARMUP_SECONDS", "0", "KEYED", "true", "EVENTS_RATE", "1000", "EVENTS_TO_PUBLISH", "500"));
        try (Subscription one = eventSql.subscribeBatch(consumer, first::addAll);
                StubApp app = StubApp.start(PublishCommandIT::answer)) {
            awaitHeldByOne("two_members");
            try (Subscription other = eventSql.subscribeBatch(consumer, second::addAll)) {
                environment.put("APP_URLS", app.uri() + "," + app.uri());

                assertThat(Runner.commandLine(environment).execute("publish")).isZero();

                assertThat(one.isRunning() && other.isRunning()).isTrue();
            }
        }
        assertThat(first.size() + second.size()).isEqualTo(500);
        assertThat(partitions(first)).hasSize(3).doesNotContainAnyElementsOf(partitions(second));
        assertThat(partitions(second)).hasSize(3);
    }

    @Test
    void run_kindPublish_isTheMainJobAndKnowsItsWorkload() throws IOException {
        Path workload = folder.resolve("small.yaml");
        Files.writeString(workload, """
                description: The main job.
                kind: publish
                environment: {databases: 2}
                variables: {WARMUP_SECONDS: 0, EVENTS_RATE: 1000, EVENTS_TO_PUBLISH: 300}
                """);
        eventSql.createStream(StreamSpec.of("as_workload").withPartitions(3));
        Map<String, String> environment = environment("as_workload", Map.of());
        try (Subscription subscription = eventSql.subscribeBatch(ConsumerSpec.of("as_workload", "app"), events -> {});
                StubApp app = StubApp.start(PublishCommandIT::answer)) {
            environment.put("APP_URL", app.uri().toString());

            Runner.commandLine(environment)
                    .execute("run", workload.toString(), "--out", folder.toString(), "--git-commit", "c0ffee");

            assertThat(subscription.isRunning()).isTrue();
        }
        Path file = folder.resolve("small/result.json");
        ResultSchema.requireValid(file);
        JsonNode result = JsonFiles.readTree(file);
        assertThat(result.get("kind").asString()).isEqualTo("publish");
        assertThat(result.get("workload").asString()).isEqualTo("small");
        assertThat(result.get("git_commit").asString()).isEqualTo("c0ffee");
        assertThat(result.get("events_published").asLong()).isEqualTo(300);
        assertThat(folder.resolve("small/runner-0.json")).exists();
        assertThat(folder.resolve("small/report.txt")).isNotEmptyFile();
    }

    private static void awaitHeldByOne(String stream) {
        while (eventSql.consumer(stream, "app").state().stream().anyMatch(partition -> partition.member() == null)) {
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    private static Set<String> partitions(Queue<StoredEvent> events) {
        return events.stream()
                .map(event -> event.shard() + "/" + event.partition())
                .collect(Collectors.toSet());
    }

    /** Runs the command and returns the events received by a consumer, in order per partition. */
    private List<StoredEvent> publish(String stream, Map<String, String> environment) {
        eventSql.createStream(StreamSpec.of(stream).withPartitions(3));
        ConcurrentLinkedQueue<StoredEvent> consumed = new ConcurrentLinkedQueue<>();
        Map<String, String> all = environment(stream, environment);
        try (Subscription subscription = eventSql.subscribeBatch(ConsumerSpec.of(stream, "app"), consumed::addAll);
                StubApp app = StubApp.start(PublishCommandIT::answer)) {
            all.put("APP_URL", app.uri().toString());

            assertThat(Runner.commandLine(all).execute("publish")).isZero();

            assertThat(subscription.isRunning()).isTrue();
        }
        return List.copyOf(consumed);
    }

    private Map<String, String> environment(String stream, Map<String, String> more) {
        Map<String, String> all = new HashMap<>(more);
        all.putAll(TestDatabase.environment(
                databases.get(0).url() + "," + databases.get(1).url()));
        all.putAll(Map.of("RUNNERS", "2", "PARTITIONS", "3", "STREAM", stream));
        all.put("RUNNER_RESULT", folder.resolve("runner.json").toString());
        return all;
    }

    private static StubApp.Answer answer(String request) {
        if (request.startsWith("POST")) {
            return new StubApp.Answer(
                    200,
                    "{\"arrived\":2,\"runners\":2,\"startAtMicros\":" + (EpochMicros.now() + 100_000)
                            + ",\"nowMicros\":" + EpochMicros.now() + "}");
        }
        return request.equals("GET /jvm")
                ? new StubApp.Answer(200, "{\"options\":[\"-Xmx2g\"],\"compilationMs\":7}")
                : new StubApp.Answer(404, "");
    }

    private static void assertEachNumberOnce(List<StoredEvent> events, long measured) {
        assertThat(events.stream()
                        .map(event -> BenchmarkEvent.decode(event.value()))
                        .filter(event -> !event.warmup())
                        .map(BenchmarkEvent::number)
                        .sorted()
                        .toList())
                .isEqualTo(LongStream.range(0, measured).boxed().toList());
    }

    private RunnerResult result() throws IOException {
        return JsonFiles.read(folder.resolve("runner.json"), RunnerResult.class);
    }
}
