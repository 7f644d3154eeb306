package io.eventsql.runner.limits;

import io.eventsql.runner.driver.Jdbc;
import io.eventsql.runner.result.Figure;
import io.eventsql.runner.sample.ProcessTree;
import io.eventsql.runner.spec.LimitsNumber;
import io.eventsql.runner.spec.LimitsPart;
import io.eventsql.runner.spec.PhaseSpec;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Measures what an event costs: CPU time of the database and of this process, transactions, blocks and WAL. The loads
 * run in turns, each with a warm-up and a stream of its own that is deleted afterwards, so that the vacuum of one load's
 * events is not counted as a cost of the next. The first round is not measured.
 */
final class CostBenchmark extends LimitsBenchmark {
    static final String STEADY = "steady";
    static final String CHECKPOINTED = "with a checkpoint";

    private static final List<Load> COST = List.of(
            Load.atRate("1,000/s", 1_000, 1, 1),
            Load.atRate("2,000/s, 2 members", 2_000, 2, 1),
            Load.atRate("10,000/s", 10_000, 1, 1),
            new Load(Calls.waiting(50, 1), 1, 1),
            new Load(Calls.waiting(4, 100), 1, 1),
            new Load(Calls.async(4), 1, 1));
    private static final List<Load> FANOUT = List.of(
            Load.atRate("1,000/s, 1 consumer", 1_000, 1, 1), Load.atRate("1,000/s, 10 consumers", 1_000, 1, 10));

    /** What commits and checkpoints cost depends on these. */
    private static final String SETTINGS = """
            SELECT name, current_setting(name) FROM pg_settings
            WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'shared_buffers', 'vacuum_truncate')
               OR name ~ '^(wal_(level|compression|recycle|init_zero)|(min|max)_wal_size)$'
               OR name ~ '(_flush_after|^checkpoint_timeout|^checkpoint_completion_target)$'
            ORDER BY name""";

    private final LimitsPart what;
    private final List<Load> loads;
    private final ProcessTree processes = new ProcessTree(Path.of("/proc"));

    private CostBenchmark(LimitsContext context, LimitsPart what, List<Load> loads) {
        super(context, what, title(context, what));
        this.what = what;
        this.loads = loads;
    }

    /** Measures several loads, with and without a checkpoint. */
    static CostBenchmark ofEvents(LimitsContext context) {
        return new CostBenchmark(context, LimitsPart.COST, COST);
    }

    /** Compares one consumer of a stream with ten. */
    static CostBenchmark ofConsumers(LimitsContext context) {
        return new CostBenchmark(context, LimitsPart.FANOUT, FANOUT);
    }

    /**
     * One load whose cost is measured.
     *
     * @param phase its calls; has its name
     * @param members the members of each consumer, each with its own {@link io.eventsql.EventSql}
     * @param consumers the consumers of the stream, all of them in each of these
     */
    private record Load(PhaseSpec phase, int members, int consumers) {
        static Load atRate(String name, long eventsPerSecond, int members, int consumers) {
            return new Load(PhaseSpec.ofRate(name, eventsPerSecond, 1), members, consumers);
        }

        String name() {
            return phase.name();
        }
    }

    @Override
    void measure() throws SQLException {
        int rounds = context.number(LimitsNumber.ROUNDS);
        Map<Load, List<Cost>> steady = new LinkedHashMap<>();
        Map<Load, List<Cost>> checkpointed = new LinkedHashMap<>();
        try (Connection connection = context.dataSource().getConnection()) {
            for (int round = 0; round <= rounds; round++) {
                for (Load load : loads) {
                    List<Cost> costs = round(connection, round, load);
                    Cost cost = costs.getFirst();
                    context.show(
                            "Cost, %s: %s, %,.0f events/s, database %.2f cores",
                            round == 0 ? "warm-up" : "round " + round + " of " + rounds,
                            load.name(),
                            cost.publishedEvents() / cost.seconds(),
                            cost.serverCpuSeconds() / cost.seconds());
                    if (round > 0) {
                        steady.computeIfAbsent(load, any -> new ArrayList<>()).add(cost);
                        checkpointed
                                .computeIfAbsent(load, any -> new ArrayList<>())
                                .addAll(costs.subList(1, costs.size()));
                    }
                }
            }
            steady.forEach((load, costs) -> {
                add(load.name(), STEADY, Cost.figures(costs));
                add(load.name(), CHECKPOINTED, Cost.figures(checkpointed.getOrDefault(load, List.of())));
            });
            if (what == LimitsPart.FANOUT) {
                Map<String, Figure> first = Cost.figures(steady.getOrDefault(loads.getFirst(), List.of()));
                Map<String, Figure> last = Cost.figures(steady.getOrDefault(loads.getLast(), List.of()));
                last.forEach((name, figure) -> part.add(
                        loads.getLast().name() + " / " + loads.getFirst().name(),
                        name,
                        STEADY,
                        figure.ratioTo(first.getOrDefault(name, figure))));
            }
            part.addSettings(settings(connection));
        }
    }

    private static String title(LimitsContext context, LimitsPart what) {
        return (what == LimitsPart.COST
                        ? "events of about 230 bytes, published and handled"
                        : "one and ten consumers of a stream in one process")
                + "; median of " + context.number(LimitsNumber.ROUNDS) + " rounds of "
                + context.number(LimitsNumber.COST_SECONDS)
                + " s (95 % interval); a client is this process, with its compilers";
    }

    private void add(String load, String column, Map<String, Figure> figures) {
        figures.forEach((name, figure) -> part.add(load, name, column, figure));
    }

    /** Returns the costs of an interval, and of the part cost those of another one that begins with a checkpoint. */
    private List<Cost> round(Connection connection, int round, Load load) throws SQLException {
        String stream = what.label() + round + "_" + load.name().replaceAll("[^0-9a-zA-Z]+", "_");
        LoadedStream loaded = context.loadedStream()
                .withConsumers(load.consumers)
                .with("members", String.valueOf(load.members))
                .with("handler", "event");
        Duration time = Duration.ofSeconds(context.number(LimitsNumber.COST_SECONDS));
        return StreamLoad.onNew(context, stream, loaded, running -> {
            List<Cost> costs = new ArrayList<>();
            if (round > 0) {
                running.send(load.phase, Duration.ofSeconds(context.number(LimitsNumber.WARMUP_SECONDS)));
            }
            Cost start = Cost.read(context, running, connection, processes);
            running.send(load.phase, time);
            Cost end = Cost.read(context, running, connection, processes);
            costs.add(end.since(start));
            if (what == LimitsPart.COST && round > 0) {
                Jdbc.execute(connection, "CHECKPOINT");
                running.send(load.phase, time);
                costs.add(Cost.read(context, running, connection, processes).since(end));
            }
            running.requireConsumed();
            return costs;
        });
    }

    static Map<String, String> settings(Connection connection) throws SQLException {
        Map<String, String> settings = new LinkedHashMap<>();
        Jdbc.rows(connection, SETTINGS, row -> settings.put(row.getString(1), row.getString(2)));
        return settings;
    }
}
