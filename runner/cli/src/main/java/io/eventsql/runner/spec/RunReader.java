package io.eventsql.runner.spec;

import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Creates a run from the fields of a workload file. Rejects fields that are invalid or do not belong to the kind. */
final class RunReader {
    static final int STREAMS_MAX = 10_000;
    static final int CONSUMERS_MAX = 100;
    static final int DURATION_MAX_SECONDS = 86_400;
    static final long RATE_MAX = 1_000_000;
    static final int CALLERS_MAX = 10_000;
    static final int KEYS_MAX = 1_000_000;
    static final long IN_FLIGHT_MAX = 100_000_000;
    private static final int DATABASES_MAX = 64;
    private static final double MULTIPLE_MAX = 1_000;
    private static final double SCHEDULE_FACTOR_MIN = 0.0001;
    /** Leaves room for keys in addition to values. */
    private static final long CALL_BYTES_MAX = Settings.DEFAULT_MAX_BATCH_BYTES * 9 / 10;

    private final WorkloadFields fields;
    private final String name;
    private final WorkloadKind kind;

    RunReader(WorkloadFields fields, String name, WorkloadKind kind) {
        this.fields = fields;
        this.name = name;
        this.kind = kind;
    }

    /** @throws InvalidWorkloadException if a field is invalid */
    RunSpec read() {
        fields.require(kind != WorkloadKind.QUERIES, "kind", "must not be queries: scripts/run_queries.bash runs them");
        RunSpec.EnvironmentSpec environment = environment(fields.object("environment"));
        boolean isLimits = kind == WorkloadKind.LIMITS;
        boolean isPublish = kind == WorkloadKind.PUBLISH;
        boolean drives = !isLimits && !isPublish;
        boolean hasPhases = kind == WorkloadKind.PHASES || kind == WorkloadKind.SEARCH;
        RunSpec run = new RunSpec(
                name,
                kind,
                environment,
                drives ? system() : new RunSpec.SystemSpec("eventsql", Map.of()),
                drives ? events(fields.object("events")) : new RunSpec.EventsSpec(0, 0),
                streams(drives, hasPhases),
                hasPhases ? phases() : List.of(),
                kind == WorkloadKind.SEARCH ? search(fields.object("search")) : null,
                kind == WorkloadKind.BLAST ? blast(fields.object("blast")) : null,
                kind == WorkloadKind.SWEEP ? sweep(fields.object("sweep")) : null,
                isLimits ? limits(fields.object("limits")) : null,
                isPublish ? fields.texts("variables") : Map.of());
        fields.require(
                !isLimits || environment.equals(RunSpec.EnvironmentSpec.ONE_DATABASE),
                "environment",
                "must be one database without standbys");
        fields.rejectUnknown();
        checkCalls(run);
        return run;
    }

    private static RunSpec.EnvironmentSpec environment(WorkloadFields fields) {
        String server =
                fields.oneOf("server", "postgres", "postgres", "postgres-pgq", "kafka", "redis", "nats", "none");
        boolean postgres = server.startsWith("postgres");
        RunSpec.EnvironmentSpec environment = new RunSpec.EnvironmentSpec(
                server,
                (int) fields.integer("databases", postgres ? 1 : 0, postgres ? 1 : 0, DATABASES_MAX),
                fields.oneOf("standbys", "none", "none", "asynchronous", "synchronous", "quorum"),
                fields.texts("server_options"));
        fields.require(
                environment.standbys().equals("none") || server.equals("postgres"),
                "standbys",
                "must be none for the server " + server);
        fields.rejectUnknown();
        return environment;
    }

    private RunSpec.SystemSpec system() {
        return new RunSpec.SystemSpec(fields.text("driver", "eventsql"), fields.texts("driver_options"));
    }

    private static RunSpec.EventsSpec events(WorkloadFields fields) {
        int bytes = (int) fields.integer("bytes", 0, 0, Settings.DEFAULT_MAX_EVENT_BYTES);
        fields.require(
                bytes == 0 || bytes >= BenchmarkEvent.EVENT_BYTES_MIN,
                "bytes",
                "must be 0 or between " + BenchmarkEvent.EVENT_BYTES_MIN + " and " + Settings.DEFAULT_MAX_EVENT_BYTES
                        + ", but is " + bytes);
        RunSpec.EventsSpec events = new RunSpec.EventsSpec(bytes, (int) fields.integer("keys", 0, 0, KEYS_MAX));
        fields.rejectUnknown();
        return events;
    }

    private RunSpec.StreamsSpec streams(boolean drives, boolean hasPhases) {
        int partitions = drives ? (int) fields.integer("partitions", 10, 1, StreamSpec.PARTITIONS_MAX) : 10;
        if (!hasPhases) {
            return new RunSpec.StreamsSpec(1, partitions, 0, 0, 120);
        }
        return new RunSpec.StreamsSpec(
                (int) fields.integer("streams", 1, 1, STREAMS_MAX),
                partitions,
                (int) fields.integer("consumers", 1, 0, CONSUMERS_MAX),
                (int) fields.integer("replayers", 0, 0, CONSUMERS_MAX),
                (int) fields.integer("consume_timeout_seconds", 120, 1, DURATION_MAX_SECONDS));
    }

    private List<PhaseSpec> phases() {
        List<PhaseSpec> phases = new ArrayList<>();
        Set<String> names = new HashSet<>();
        boolean hasReference = false;
        double factor = fields.decimal("schedule_factor", 1, SCHEDULE_FACTOR_MIN, 1);
        for (WorkloadFields phaseFields : fields.objects("phases")) {
            PhaseSpec phase = phase(phaseFields, hasReference, factor);
            phaseFields.require(names.add(phase.name()), "name", "is not unique: " + phase.name());
            hasReference |= phase.measured() && phase.callers() != null;
            phases.add(phase);
        }
        fields.require(!phases.isEmpty(), "phases", "is missing: at least one phase");
        return List.copyOf(phases);
    }

    /** @param factor shortens measured phases; at least one second remains */
    private static PhaseSpec phase(WorkloadFields fields, boolean hasReference, double factor) {
        PhaseRate rate = fields.convert("rate", PhaseRate::of);
        Integer callers = fields.has("callers") ? (int) fields.integer("callers", 1, CALLERS_MAX) : null;
        fields.require((rate == null) != (callers == null), "rate", "or callers is required, but not both");
        if (rate != null) {
            checkRate(fields, rate, hasReference);
        }
        String name = fields.text("name", "");
        fields.require(
                name.matches("[a-z0-9][a-z0-9-]{0,39}"),
                "name",
                "must be 1 to 40 lower-case letters, digits and hyphens, but is '" + name + "'");
        Long inFlight = fields.has("in_flight") ? fields.integer("in_flight", 1, IN_FLIGHT_MAX) : null;
        fields.require(inFlight == null || rate != null, "in_flight", "requires rate, not callers");
        boolean async = fields.flag("async", false);
        fields.require(!async || callers != null, "async", "requires callers, because a rate never waits");
        boolean measured = fields.flag("measured", true);
        int fullSeconds = (int) fields.integer("seconds", 1, DURATION_MAX_SECONDS);
        int seconds = measured ? (int) Math.max(1, Math.round(fullSeconds * factor)) : fullSeconds;
        PhaseSpec phase = new PhaseSpec(
                name,
                measured,
                rate,
                inFlight,
                callers,
                async,
                (int) fields.integer("events_per_call", 1, 1, Settings.DEFAULT_MAX_BATCH_EVENTS),
                seconds,
                fields.flag("held_snapshot", false) ? true : null,
                seconds == fullSeconds ? null : fullSeconds);
        fields.rejectUnknown();
        return phase;
    }

    private static void checkRate(WorkloadFields fields, PhaseRate rate, boolean hasReference) {
        double value = rate.value().doubleValue();
        if (rate.isMultiple()) {
            fields.require(hasReference, "rate", "is a multiple, but no measured phase before it has callers");
            fields.require(
                    value > 0 && value <= MULTIPLE_MAX,
                    "rate",
                    "must be a multiple above 0 and up to " + (long) MULTIPLE_MAX + "x, but is " + rate.json());
        } else {
            fields.require(
                    value >= 1 && value <= RATE_MAX,
                    "rate",
                    "must be between 1 and " + RATE_MAX + ", but is " + rate.json());
        }
    }

    private static RunSpec.SearchSpec search(WorkloadFields fields) {
        RunSpec.SearchSpec search = new RunSpec.SearchSpec(
                fields.oneOf("latency", RunSpec.SearchSpec.Latency.PUBLISH, RunSpec.SearchSpec.Latency.class),
                fields.decimal("percentile", 99, 1, 100),
                fields.decimal("limit_ms", 15, 0.001, 3_600_000),
                fields.integer("from_rate", 1_000, 1, RATE_MAX),
                fields.integer("to_rate", 200_000, 1, RATE_MAX),
                fields.decimal("precision", 0.05, 0.001, 1));
        fields.require(
                search.fromRate() < search.toRate(),
                "to_rate",
                "must be above from_rate (" + search.fromRate() + "), but is " + search.toRate());
        fields.rejectUnknown();
        return search;
    }

    private static RunSpec.BlastSpec blast(WorkloadFields fields) {
        RunSpec.BlastSpec blast = new RunSpec.BlastSpec(
                (int) fields.integer("messages", 10_000, 1, 10_000_000),
                (int) fields.integer("repeats", 257, 1, 1_000_000),
                fields.integer("cap_bytes", 1L << 30, 1, 1L << 40));
        fields.rejectUnknown();
        return blast;
    }

    private static RunSpec.SweepSpec sweep(WorkloadFields fields) {
        RunSpec.SweepSpec sweep = new RunSpec.SweepSpec(
                fields.integers("event_counts", List.of(1, 100, 10_000, 1_000_000), 1, 100_000_000),
                (int) fields.integer("trials", 10, 1, 10_000),
                (int) fields.integer("buffer_bytes", 102_400, 1, CALL_BYTES_MAX),
                fields.flag("waiting", true));
        fields.rejectUnknown();
        return sweep;
    }

    private static LimitsSpec limits(WorkloadFields fields) {
        Map<String, Double> numbers = new LinkedHashMap<>();
        for (LimitsNumber number : LimitsNumber.values()) {
            numbers.put(
                    number.field(),
                    number.isWhole()
                            ? (double) fields.integer(
                                    number.field(), (long) number.defaultValue(), (long) number.min(), (long)
                                            number.max())
                            : fields.decimal(number.field(), number.defaultValue(), number.min(), number.max()));
        }
        LimitsSpec limits = new LimitsSpec(
                fields.labels("parts", LimitsPart.labels()),
                fields.oneOf("storage", "rows", "rows", "blocks"),
                numbers);
        fields.rejectUnknown();
        return limits;
    }

    /** Checks constraints that span several fields. */
    private void checkCalls(RunSpec run) {
        for (int i = 0; i < run.phases().size(); i++) {
            PhaseSpec phase = run.phases().get(i);
            boolean canHold = kind == WorkloadKind.PHASES
                    && run.environment().isPostgres()
                    && run.environment().databases() == 1;
            fields.require(
                    !phase.holdsSnapshot() || canHold,
                    "phases." + i + ".held_snapshot",
                    "requires kind phases and one PostgreSQL database");
            long callBytes = (long) run.events().bytes() * phase.eventsPerCall();
            fields.require(
                    callBytes <= CALL_BYTES_MAX,
                    "phases." + i + ".events_per_call",
                    "times events.bytes must be at most " + CALL_BYTES_MAX + ", but is " + callBytes);
            @Nullable Integer callers = phase.callers();
            fields.require(
                    run.events().keys() == 0 || callers == null || run.events().keys() >= callers,
                    "events.keys",
                    "must be 0 or at least the callers of the phase " + phase.name() + " (" + callers
                            + "), because a key belongs to one caller, but is "
                            + run.events().keys());
        }
        RunSpec.BlastSpec blast = run.blast();
        if (blast != null) {
            int bytes = run.events().bytes();
            fields.require(bytes > 0, "events.bytes", "must be the size of a message of the blast, but is 0");
            fields.require(
                    blast.capBytes() >= bytes,
                    "blast.cap_bytes",
                    "must be at least events.bytes (" + bytes + "), but is " + blast.capBytes());
        }
        RunSpec.SearchSpec search = run.search();
        fields.require(
                search == null
                        || search.latency() == RunSpec.SearchSpec.Latency.PUBLISH
                        || run.streams().consumers() > 0,
                "consumers",
                "must be at least 1 for a search by end_to_end latency, but is 0");
        fields.require(
                search == null || run.phases().getLast().rate() != null,
                "phases",
                "of a search must end with a phase that has a rate: the trial");
    }
}
