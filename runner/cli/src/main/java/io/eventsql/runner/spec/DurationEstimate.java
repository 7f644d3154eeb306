package io.eventsql.runner.spec;

import java.util.Map;
import java.util.Objects;

/** Estimates the duration of a run. A rough estimate is sufficient because it is only displayed. */
final class DurationEstimate {
    /** Startup, connecting, waiting for consumers. */
    private static final long OVERHEAD_SECONDS = 10;

    /** The assumed rate of a single database on a small machine, in events/s. */
    private static final long ASSUMED_RATE = 20_000;

    /** Parts with default numbers take between one and ten minutes. */
    private static final long LIMITS_PART_SECONDS = 120;

    private DurationEstimate() {}

    static long seconds(RunSpec run) {
        return OVERHEAD_SECONDS
                + switch (run.kind()) {
                    case PUBLISH -> publishing(run.variables());
                    case PHASES -> phases(run);
                    case SEARCH -> searching(run);
                    case BLAST -> blasting(run);
                    case SWEEP -> sweeping(run);
                    case LIMITS -> limits(Objects.requireNonNull(run.limits()));
                    case QUERIES -> throw new IllegalArgumentException("not a run of the runner: " + run.name());
                };
    }

    private static long publishing(Map<String, String> variables) {
        long rate = number(variables, "EVENTS_RATE", 5_000);
        long events = number(variables, "EVENTS_TO_PUBLISH", 100_000);
        return number(variables, "WARMUP_SECONDS", 5) + events / (rate == 0 ? ASSUMED_RATE : rate);
    }

    private static long limits(LimitsSpec limits) {
        return limits.parts().size() * LIMITS_PART_SECONDS;
    }

    private static long number(Map<String, String> variables, String name, long otherwise) {
        try {
            return Long.parseLong(variables.getOrDefault(name, String.valueOf(otherwise)));
        } catch (NumberFormatException e) {
            return otherwise;
        }
    }

    private static long phases(RunSpec run) {
        return run.phases().stream().mapToLong(PhaseSpec::seconds).sum();
    }

    private static long searching(RunSpec run) {
        RunSpec.SearchSpec search = run.search();
        long trials = search == null
                ? 1
                : Math.round(Math.log((double) search.toRate() / search.fromRate()) / Math.log(2))
                        + Math.round(-Math.log(search.precision()) / Math.log(2));
        return phases(run) + trials * run.phases().getLast().seconds();
    }

    private static long blasting(RunSpec run) {
        RunSpec.BlastSpec blast = run.blast();
        if (blast == null) {
            return 0;
        }
        long capped = blast.capBytes() / Math.max(1, run.events().bytes());
        return Math.min(blast.messages(), capped) * blast.repeats() / ASSUMED_RATE;
    }

    private static long sweeping(RunSpec run) {
        RunSpec.SweepSpec sweep = run.sweep();
        return sweep == null
                ? 0
                : sweep.eventCounts().stream().mapToLong(Integer::longValue).sum() * sweep.trials() / ASSUMED_RATE;
    }
}
