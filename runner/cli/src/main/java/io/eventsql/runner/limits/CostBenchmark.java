package io.eventsql.runner.limits;

import io.eventsql.runner.load.Callers;
import io.eventsql.runner.load.LoadContext;
import io.eventsql.runner.load.LoadGenerator;
import io.eventsql.runner.load.OpenLoop;
import io.eventsql.runner.sample.ProcessTree;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;

/**
 * Measures what an event costs: CPU time of the database and of this process, transactions, blocks and WAL. The loads
 * run in turns, each with a warm-up and a stream of its own that is deleted afterwards, so that the vacuum of one load's
 * events is not counted as a cost of the next. The first round is not measured.
 */
final class CostBenchmark {
    private static final List<Case> COST = List.of(
            Case.atRate("1,000/s", 1_000, 1, 1),
            Case.atRate("2,000/s, 2 members", 2_000, 2, 1),
            Case.atRate("10,000/s", 10_000, 1, 1),
            new Case("publish, 50 callers", 1, 1, 1, load -> Callers.waiting(load, 50)),
            new Case("publishAll of 100, 4 callers", 100, 1, 1, load -> Callers.waiting(load, 4)),
            new Case("publishAsync, 4 callers", 1, 1, 1, load -> Callers.notWaiting(load, 4)));
    private static final List<Case> FANOUT = List.of(
            Case.atRate("1,000/s, 1 consumer", 1_000, 1, 1), Case.atRate("1,000/s, 10 consumers", 1_000, 1, 10));

    /** What commits and checkpoints cost depends on these. */
    private static final String SETTINGS = """
            SELECT name, current_setting(name) FROM pg_settings
            WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'vacuum_truncate')
               OR name ~ '^(wal_(level|compression|recycle|init_zero)|(min|max)_wal_size)$'
               OR name ~ '(_flush_after|^checkpoint_timeout|^checkpoint_completion_target)$'
            ORDER BY name""";

    private final LimitsContext context;
    private final LimitsSettings.CostLoad settings;
    private final ProcessTree processes = new ProcessTree(Path.of("/proc"));

    CostBenchmark(LimitsContext context, LimitsSettings.CostLoad settings) {
        this.context = context;
        this.settings = settings;
    }

    /**
     * One load whose cost is measured.
     *
     * @param members the members of each consumer, each with its own {@link io.eventsql.EventSql}
     * @param consumers the consumers of the stream, all of them in each of these
     */
    private record Case(
            String name,
            int eventsPerCall,
            int members,
            int consumers,
            Function<LoadContext, LoadGenerator> generator) {

        static Case atRate(String name, long eventsPerSecond, int members, int consumers) {
            return new Case(name, 1, members, consumers, load -> new OpenLoop(load, eventsPerSecond));
        }
    }

    /** @throws RunStoppedException after a stop signal */
    CostResult measure() throws SQLException {
        return measure("cost", COST, true);
    }

    /**
     * Compares one consumer of a stream with ten.
     *
     * @throws RunStoppedException after a stop signal
     */
    CostResult measureFanout() throws SQLException {
        return measure("fanout", FANOUT, false).withLastToFirst();
    }

    private CostResult measure(String what, List<Case> cases, boolean withCheckpoint) throws SQLException {
        Map<Case, List<Cost>> steady = new LinkedHashMap<>();
        Map<Case, List<Cost>> checkpointed = new LinkedHashMap<>();
        try (Connection connection = context.dataSource().getConnection()) {
            for (int round = 0; round <= settings.rounds(); round++) {
                for (Case load : cases) {
                    List<Cost> costs = round(connection, what + round, load, withCheckpoint && round > 0);
                    context.progress()
                            .printf(
                                    Locale.ROOT,
                                    "Cost, %s: %s, %,.0f events/s, database %.2f cores%n",
                                    round == 0 ? "warm-up" : "round " + round + " of " + settings.rounds(),
                                    load.name,
                                    costs.getFirst().publishedEvents()
                                            / costs.getFirst().seconds(),
                                    costs.getFirst().serverCpuSeconds()
                                            / costs.getFirst().seconds());
                    if (round > 0) {
                        steady.computeIfAbsent(load, any -> new ArrayList<>()).add(costs.getFirst());
                        checkpointed
                                .computeIfAbsent(load, any -> new ArrayList<>())
                                .addAll(costs.subList(1, costs.size()));
                    }
                }
            }
            List<CostResult.Load> loads = new ArrayList<>();
            steady.forEach((load, costs) ->
                    loads.add(CostResult.Load.of(load.name, costs, checkpointed.getOrDefault(load, List.of()))));
            return new CostResult(settings, settings(connection), loads, null);
        }
    }

    /** Returns the costs of an interval, and with a checkpoint those of another one that begins with it. */
    private List<Cost> round(Connection connection, String what, Case load, boolean withCheckpoint)
            throws SQLException {
        String stream = context.stream(what + "_" + load.name.replaceAll("[^0-9a-zA-Z]+", "_"));
        context.eventSql().createStream(context.streamSpec(stream));
        List<Cost> costs = new ArrayList<>();
        try (ConsumedLoad running = new ConsumedLoad(context, stream, load.members, load.consumers, event -> {})) {
            running.publish(load.generator.apply(context.publishLoad(stream, load.eventsPerCall)));
            context.sleep(settings.warmupSeconds());
            Cost start = Cost.read(context, running, connection, processes);
            context.sleep(settings.seconds());
            Cost end = Cost.read(context, running, connection, processes);
            costs.add(end.since(start));
            if (withCheckpoint) {
                try (Statement statement = connection.createStatement()) {
                    statement.execute("CHECKPOINT");
                }
                context.sleep(settings.seconds());
                costs.add(Cost.read(context, running, connection, processes).since(end));
            }
            running.finish();
        }
        context.eventSql()
                .deleteStream(
                        stream, context.eventSql().previewDeleteStream(stream).confirmation());
        return costs;
    }

    static Map<String, String> settings(Connection connection) throws SQLException {
        Map<String, String> settings = new LinkedHashMap<>();
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(SETTINGS)) {
            while (row.next()) {
                settings.put(row.getString(1), row.getString(2));
            }
        }
        return settings;
    }
}
