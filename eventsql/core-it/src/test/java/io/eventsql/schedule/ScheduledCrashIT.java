package io.eventsql.schedule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.ScheduleId;
import io.eventsql.StoredEvent;
import io.eventsql.eventsdb.EmbeddedEventsDb;
import io.eventsql.fixture.Pools;
import io.eventsql.fixture.Seeds;
import io.eventsql.fixture.TablesTemplate;
import io.eventsql.fixture.TestStreams;
import io.eventsql.fixture.process.ChildProcess;
import io.eventsql.fixture.process.ScheduleProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.ds.PGSimpleDataSource;

/**
 * Goal: no scheduled event is appended early, lost or appended twice, and none that was cancelled is appended, although
 * processes that schedule, cancel and relay are killed (SIGKILL) at any moment, and so is the server of one of the shards.
 *
 * <p>Method: Java processes with two shards and a short lease; each writes a line for every call that has returned. At the end
 * the streams are compared with the lines.
 *
 * <p>{@code -Deventsql.test.scheduleKills=N} kills N times instead of twice.
 */
class ScheduledCrashIT {
    private static final String STREAM = "reminders";
    private static final int KILLS = Integer.getInteger("eventsql.test.scheduleKills", 2);
    private static final int PROCESSES = 2;
    private static final int KILL_INTERVAL_MS_MAX = 1_500;
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    @TempDir
    private Path folder;

    private EmbeddedEventsDb eventsDb;
    private List<HikariDataSource> shards;
    private int started;

    private EventSql open() {
        EventSql eventSql = EventSql.builder(shards)
                .settings(ScheduleProcess.settings().build())
                .build();
        eventSql.createStream(TestStreams.of(STREAM).withPartitions(2).withSegmentSize(1_000));
        return eventSql;
    }

    private ChildProcess startProcess(Random random) throws IOException {
        String name = "p" + started++;
        ChildProcess process = new ChildProcess(
                folder,
                ScheduleProcess.class,
                List.of(
                        eventsDb.username(),
                        eventsDb.password(),
                        String.join(
                                ",",
                                shards.stream()
                                        .map(HikariDataSource::getJdbcUrl)
                                        .toList()),
                        STREAM,
                        name,
                        Long.toString(random.nextLong()),
                        folder.resolve(name + ".calls").toString()));
        process.awaitLine("READY");
        return process;
    }

    @Test
    void relay_killedAtAnyMoment_appendsEachEventOnceAndNotEarly() throws Exception {
        Random random = Seeds.random("ScheduledCrashIT");
        try (EmbeddedEventsDb server = EmbeddedEventsDb.builder().start()) {
            eventsDb = server;
            shards = List.of(
                    Pools.pool(server, ((PGSimpleDataSource) TablesTemplate.copy(server, "shard_a")).getUrl()),
                    Pools.pool(server, ((PGSimpleDataSource) TablesTemplate.copy(server, "shard_b")).getUrl()));
            try {
                open().close(); // creates the tables and the stream
                killProcesses(random);
                verify();
            } finally {
                shards.forEach(HikariDataSource::close);
            }
        }
    }

    private void killProcesses(Random random) throws Exception {
        ChildProcess[] processes = new ChildProcess[PROCESSES];
        try {
            for (int i = 0; i < PROCESSES; i++) {
                processes[i] = startProcess(random);
            }
            for (int kill = 0; kill < KILLS; kill++) {
                TimeUnit.MILLISECONDS.sleep(random.nextInt(KILL_INTERVAL_MS_MAX));
                int victim = random.nextInt(PROCESSES);
                processes[victim].kill();
                processes[victim] = startProcess(random);
                if (kill == KILLS / 2) {
                    eventsDb.crash();
                    eventsDb.restart();
                }
            }
            for (ChildProcess process : processes) {
                process.finish();
            }
        } finally {
            for (ChildProcess process : processes) {
                if (process != null) {
                    process.close();
                }
            }
        }
    }

    private void verify() throws IOException {
        Map<String, UUID> scheduled = new HashMap<>();
        Set<UUID> cancelled = new HashSet<>();
        Set<UUID> perhapsCancelled = new HashSet<>();
        readCalls(scheduled, cancelled, perhapsCancelled);
        List<StoredEvent> stored = new ArrayList<>();
        try (EventSql last = open()) {
            await().atMost(DEADLINE)
                    .untilAsserted(() ->
                            assertThat(last.scheduledEvents(null, null, 1)).isEmpty());
            for (int shard = 0; shard < 2; shard++) {
                for (int partition = 0; partition < 2; partition++) {
                    stored.addAll(readAll(last, shard, partition));
                }
            }
        }
        System.out.println(stored.size() + " events after " + KILLS + " kills");
        assertThat(stored).extracting(StoredEvent::text).doesNotHaveDuplicates();
        Set<UUID> appended = new HashSet<>();
        for (StoredEvent event : stored) {
            UUID id = scheduled.get(event.text());
            if (id != null) { // otherwise its process was killed before the call returned
                appended.add(id);
                assertThat(event.publishedAt()).isAfterOrEqualTo(ScheduleId.due(id));
            }
        }
        assertThat(appended).doesNotContainAnyElementsOf(cancelled);
        Set<UUID> expected = new HashSet<>(scheduled.values());
        expected.removeAll(cancelled);
        expected.removeAll(perhapsCancelled);
        assertThat(appended).containsAll(expected);
        assertThat(stored).hasSizeGreaterThan(KILLS * 10);
    }

    private void readCalls(Map<String, UUID> scheduled, Set<UUID> cancelled, Set<UUID> perhapsCancelled)
            throws IOException {
        UUID last = null;
        for (int i = 0; i < started; i++) {
            Path file = folder.resolve("p" + i + ".calls");
            String text = Files.exists(file) ? Files.readString(file) : "";
            for (String line :
                    text.substring(0, text.lastIndexOf('\n') + 1).lines().toList()) {
                String[] fields = line.split(" ");
                UUID id = UUID.fromString(fields[1]);
                switch (fields[0]) {
                    case "S" -> scheduled.put(fields[2], id);
                    case "C" -> cancelled.add(id);
                    default -> perhapsCancelled.add(id);
                }
                last = id;
            }
            if (last != null) {
                perhapsCancelled.add(last); // its process may have been killed while it cancelled this one
            }
        }
    }

    private static List<StoredEvent> readAll(EventSql eventSql, int shard, int partition) {
        List<StoredEvent> all = new ArrayList<>();
        List<StoredEvent> page;
        do {
            page = eventSql.read(new EventPosition(STREAM, shard, partition, all.size()), 1_000);
            all.addAll(page);
        } while (!page.isEmpty());
        return all;
    }
}
