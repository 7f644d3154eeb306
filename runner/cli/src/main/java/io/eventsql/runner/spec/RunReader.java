package io.eventsql.runner.spec;

import io.eventsql.Settings;
import io.eventsql.StreamSpec;
import io.eventsql.benchmark.event.BenchmarkEvent;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Makes a run of the fields of a workload file, which are refused where they are wrong or do not belong to the kind. */
final class RunReader {
    static final int MAX_STREAMS = 10_000;
    static final int MAX_CONSUMERS = 100;
    static final int MAX_SECONDS = 86_400;
    static final long MAX_RATE = 1_000_000;
    static final int MAX_CALLERS = 10_000;
    static final int MAX_KEYS = 1_000_000;
    static final long MAX_IN_FLIGHT = 100_000_000;
    private static final int MAX_DATABASES = 64;
    private static final double MAX_MULTIPLE = 1_000;
    /** Leaves room for keys beside the values. */
    private static final long MAX_CALL_BYTES = Settings.DEFAULT_MAX_BATCH_BYTES * 9 / 10;

    private final Fields fields;
    private final String name;
    private final Kind kind;

    RunReader(Fields fields, String name, Kind kind) {
        this.fields = fields;
        this.name = name;
        this.kind = kind;
    }

    /** @throws InvalidWorkloadException if a field is wrong */
    RunSpec read() {
        EnvironmentSpec environment = environment(fields.object("environment"));
        boolean drives = kind != Kind.PUBLISH;
        boolean hasPhases = kind == Kind.PHASES || kind == Kind.SEARCH;
        RunSpec run = new RunSpec(
                name,
                kind,
                environment,
                drives ? system() : new RunSpec.SystemSpec("eventsql", Map.of()),
                drives ? events(fields.object("events")) : new EventsSpec(0, 0),
                streams(drives, hasPhases),
                hasPhases ? phases() : List.of(),
                kind == Kind.SEARCH ? search(fields.object("search")) : null,
                kind == Kind.BLAST ? blast(fields.object("blast")) : null,
                kind == Kind.SWEEP ? sweep(fields.object("sweep")) : null,
                drives ? Map.of() : fields.texts("variables"));
        fields.end();
        checkCalls(run);
        return run;
    }

    private static EnvironmentSpec environment(Fields fields) {
        String server = fields.oneOf("server", "postgres", "postgres", "postgres-pgq", "kafka", "redis", "none");
        boolean postgres = server.startsWith("postgres");
        EnvironmentSpec environment = new EnvironmentSpec(
                server,
                (int) fields.whole("databases", postgres ? 1 : 0, postgres ? 1 : 0, MAX_DATABASES),
                fields.oneOf("standbys", "none", "none", "asynchronous", "synchronous", "quorum"),
                fields.texts("server_options"));
        fields.require(
                environment.standbys().equals("none") || server.equals("postgres"),
                "standbys",
                "must be none for the server " + server);
        fields.end();
        return environment;
    }

    private RunSpec.SystemSpec system() {
        return new RunSpec.SystemSpec(fields.text("driver", "eventsql"), fields.texts("driver_options"));
    }

    private static EventsSpec events(Fields fields) {
        int bytes = (int) fields.whole("bytes", 0, 0, Settings.DEFAULT_MAX_EVENT_BYTES);
        fields.require(
                bytes == 0 || bytes >= BenchmarkEvent.MIN_EVENT_BYTES,
                "bytes",
                "must be 0 or between " + BenchmarkEvent.MIN_EVENT_BYTES + " and " + Settings.DEFAULT_MAX_EVENT_BYTES
                        + ", but is " + bytes);
        EventsSpec events = new EventsSpec(bytes, (int) fields.whole("keys", 0, 0, MAX_KEYS));
        fields.end();
        return events;
    }

    private RunSpec.StreamsSpec streams(boolean drives, boolean hasPhases) {
        int partitions = drives ? (int) fields.whole("partitions", 10, 1, StreamSpec.PARTITIONS_MAX) : 10;
        if (!hasPhases) {
            return new RunSpec.StreamsSpec(1, partitions, 0, 0, 120);
        }
        return new RunSpec.StreamsSpec(
                (int) fields.whole("streams", 1, 1, MAX_STREAMS),
                partitions,
                (int) fields.whole("consumers", 1, 0, MAX_CONSUMERS),
                (int) fields.whole("replayers", 0, 0, MAX_CONSUMERS),
                (int) fields.whole("consume_timeout_seconds", 120, 1, MAX_SECONDS));
    }

    private List<PhaseSpec> phases() {
        List<PhaseSpec> phases = new ArrayList<>();
        Set<String> names = new HashSet<>();
        boolean hasReference = false;
        for (Fields phaseFields : fields.objects("phases")) {
            PhaseSpec phase = phase(phaseFields, hasReference);
            phaseFields.require(names.add(phase.name()), "name", "is there twice: " + phase.name());
            hasReference |= phase.measured() && phase.callers() != null;
            phases.add(phase);
        }
        fields.require(!phases.isEmpty(), "phases", "is missing: at least one phase");
        return List.copyOf(phases);
    }

    private static PhaseSpec phase(Fields fields, boolean hasReference) {
        PhaseRate rate = fields.made("rate", PhaseRate::of);
        Integer callers = fields.has("callers") ? (int) fields.whole("callers", 1, MAX_CALLERS) : null;
        fields.require((rate == null) != (callers == null), "rate", "or callers is needed, exactly one of both");
        if (rate != null) {
            checkRate(fields, rate, hasReference);
        }
        String name = fields.text("name", "");
        fields.require(
                name.matches("[a-z0-9][a-z0-9-]{0,39}"),
                "name",
                "must be 1 to 40 lower-case letters, digits and hyphens, but is '" + name + "'");
        Long inFlight = fields.has("in_flight") ? fields.whole("in_flight", 1, MAX_IN_FLIGHT) : null;
        fields.require(inFlight == null || rate != null, "in_flight", "belongs to a rate, not to callers");
        boolean async = fields.flag("async", false);
        fields.require(!async || callers != null, "async", "belongs to callers: a rate never waits");
        PhaseSpec phase = new PhaseSpec(
                name,
                fields.flag("measured", true),
                rate,
                inFlight,
                callers,
                async,
                (int) fields.whole("events_per_call", 1, 1, Settings.DEFAULT_MAX_BATCH_EVENTS),
                (int) fields.whole("seconds", 1, MAX_SECONDS));
        fields.end();
        return phase;
    }

    private static void checkRate(Fields fields, PhaseRate rate, boolean hasReference) {
        double value = rate.value().doubleValue();
        if (rate.isMultiple()) {
            fields.require(hasReference, "rate", "is a multiple, but no measured phase before it has callers");
            fields.require(
                    value > 0 && value <= MAX_MULTIPLE,
                    "rate",
                    "must be a multiple above 0 and up to " + (long) MAX_MULTIPLE + "x, but is " + rate.json());
        } else {
            fields.require(
                    value >= 1 && value <= MAX_RATE,
                    "rate",
                    "must be between 1 and " + MAX_RATE + ", but is " + rate.json());
        }
    }

    private static SearchSpec search(Fields fields) {
        SearchSpec search = new SearchSpec(
                fields.oneOf("latency", SearchSpec.Latency.PUBLISH, SearchSpec.Latency.class),
                fields.decimal("percentile", 99, 1, 100),
                fields.decimal("limit_ms", 15, 0.001, 3_600_000),
                fields.whole("from_rate", 1_000, 1, MAX_RATE),
                fields.whole("to_rate", 200_000, 1, MAX_RATE),
                fields.decimal("precision", 0.05, 0.001, 1));
        fields.require(
                search.fromRate() < search.toRate(),
                "to_rate",
                "must be above from_rate (" + search.fromRate() + "), but is " + search.toRate());
        fields.end();
        return search;
    }

    private static BlastSpec blast(Fields fields) {
        BlastSpec blast = new BlastSpec(
                (int) fields.whole("messages", 10_000, 1, 10_000_000),
                (int) fields.whole("repeats", 257, 1, 1_000_000),
                fields.whole("cap_bytes", 1L << 30, 1, 1L << 40));
        fields.end();
        return blast;
    }

    private static SweepSpec sweep(Fields fields) {
        SweepSpec sweep = new SweepSpec(
                fields.wholes("event_counts", List.of(1, 100, 10_000, 1_000_000), 1, 100_000_000),
                (int) fields.whole("trials", 10, 1, 10_000),
                (int) fields.whole("buffer_bytes", 102_400, 1, MAX_CALL_BYTES),
                fields.flag("waiting", true));
        fields.end();
        return sweep;
    }

    /** What can be said only of several fields together. */
    private void checkCalls(RunSpec run) {
        for (int i = 0; i < run.phases().size(); i++) {
            PhaseSpec phase = run.phases().get(i);
            long callBytes = (long) run.events().bytes() * phase.eventsPerCall();
            fields.require(
                    callBytes <= MAX_CALL_BYTES,
                    "phases." + i + ".events_per_call",
                    "times events.bytes must be at most " + MAX_CALL_BYTES + ", but is " + callBytes);
            @Nullable Integer callers = phase.callers();
            fields.require(
                    run.events().keys() == 0 || callers == null || run.events().keys() >= callers,
                    "events.keys",
                    "must be 0 or at least the callers of the phase " + phase.name() + " (" + callers
                            + "), because a key belongs to one caller, but is "
                            + run.events().keys());
        }
        SearchSpec search = run.search();
        fields.require(
                search == null
                        || search.latency() == SearchSpec.Latency.PUBLISH
                        || run.streams().consumers() > 0,
                "consumers",
                "must be at least 1 to search by end_to_end latency, but is 0");
        fields.require(
                search == null || run.phases().getLast().rate() != null,
                "phases",
                "of a search must end with one that has a rate: the trial");
    }
}
