package io.eventsql.runner.spec;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class WorkloadFileTest {
    private static final String SMALL = """
            description: Something.
            kind: phases
            phases:
              - {name: steady, rate: 1000, seconds: 5}
            """;

    @Test
    void read_onlyPhases_hasTheDocumentedDefaults() {
        RunSpec run = read(SMALL).runs().getFirst();

        assertThat(run)
                .isEqualTo(new RunSpec(
                        "some",
                        WorkloadKind.PHASES,
                        new RunSpec.EnvironmentSpec("postgres", 1, "none", Map.of()),
                        new RunSpec.SystemSpec("eventsql", Map.of()),
                        new RunSpec.EventsSpec(0, 0),
                        new RunSpec.StreamsSpec(1, 10, 1, 0, 120),
                        List.of(new PhaseSpec(
                                "steady", true, new PhaseRate(new BigDecimal(1_000), false), null, null, false, 1, 5)),
                        null,
                        null,
                        null,
                        null,
                        Map.of()));
        assertThat(run.estimatedSeconds()).isEqualTo(15);
    }

    @Test
    void read_runs_areMergedDeeplyAndListsReplaced() {
        Workload workload = read(SMALL + """
                environment: {databases: 2, server_options: {a: 1}}
                consumers: 3
                runs:
                  - {name: first}
                  - name: second
                    consumers: 0
                    environment: {server_options: {b: "x"}}
                    phases:
                      - {name: fast, callers: 4, async: true, events_per_call: 10, seconds: 7}
                """);

        RunSpec first = workload.runs().getFirst();
        assertThat(first.streams().consumers()).isEqualTo(3);
        assertThat(first.environment().serverOptions()).isEqualTo(Map.of("a", "1"));
        RunSpec second = workload.runs().getLast();
        assertThat(second.name()).isEqualTo("second");
        assertThat(second.streams().consumers()).isZero();
        assertThat(second.environment())
                .isEqualTo(new RunSpec.EnvironmentSpec("postgres", 2, "none", Map.of("a", "1", "b", "x")));
        assertThat(second.phases()).containsExactly(new PhaseSpec("fast", true, null, null, 4, true, 10, 7));
    }

    @Test
    void read_overrides_reachEveryRunAfterTheMerge() {
        Workload workload = read(
                SMALL + "runs: [{name: a, consumers: 2}, {name: b}]",
                "consumers=5",
                "phases.0.rate=2000",
                "driver_options.page=10",
                "events.bytes=180");

        assertThat(workload.runs()).hasSize(2).allSatisfy(run -> {
            assertThat(run.streams().consumers()).isEqualTo(5);
            assertThat(run.phases().getFirst().rate()).isEqualTo(PhaseRate.of(2_000));
            assertThat(run.system().driverOptions()).isEqualTo(Map.of("page", "10"));
            assertThat(run.events().bytes()).isEqualTo(180);
        });
    }

    @Test
    void read_heldSnapshotAndScheduleFactor_changeThePhases() {
        List<PhaseSpec> phases =
                read(SMALL + """
                          - {name: warm-up, measured: false, rate: 1, seconds: 30}
                          - {name: held, held_snapshot: true, rate: 1, seconds: 1800}
                        """, "schedule_factor=0.2").runs().getFirst().phases();

        assertThat(phases).extracting(PhaseSpec::seconds).containsExactly(1, 30, 360);
        assertThat(phases).extracting(PhaseSpec::fullSeconds).containsExactly(5, null, 1_800);
        assertThat(phases).extracting(PhaseSpec::holdsSnapshot).containsExactly(false, false, true);
    }

    @Test
    void read_multiple_refersToThePhaseWithCallers() {
        RunSpec run = read("""
                        description: Something.
                        kind: phases
                        phases:
                          - {name: sustainable, callers: 50, seconds: 5}
                          - {name: overload, rate: 5x, in_flight: 100, seconds: 5}
                          - {name: recovery, rate: 0.5x, seconds: 5}
                        """).runs().getFirst();

        assertThat(run.phases().get(1).rate()).isEqualTo(new PhaseRate(new BigDecimal(5), true));
        assertThat(run.phases().get(1).inFlight()).isEqualTo(100);
        PhaseRate half = run.phases().get(2).rate();
        assertThat(half).isNotNull();
        assertThat(half.eventsPerSecond(1_001)).isEqualTo(501);
        assertThat(half.json()).isEqualTo("0.5x");
    }

    @Test
    void read_otherKinds_haveTheirOwnFields() {
        RunSpec publish = read("{description: D., kind: publish, variables: {EVENTS_RATE: 10, KEYED: true}}")
                .runs()
                .getFirst();
        assertThat(publish.variables()).isEqualTo(Map.of("EVENTS_RATE", "10", "KEYED", "true"));

        RunSpec search = read(SMALL.replace("phases\n", "search\n") + "search: {limit_ms: 20, latency: end_to_end}")
                .runs()
                .getFirst();
        assertThat(search.search())
                .isEqualTo(new RunSpec.SearchSpec(RunSpec.SearchSpec.Latency.END_TO_END, 99, 20, 1_000, 200_000, 0.05));

        RunSpec blast = read("{description: D., kind: blast, events: {bytes: 8192}, blast: {repeats: 3}}")
                .runs()
                .getFirst();
        assertThat(blast.blast()).isEqualTo(new RunSpec.BlastSpec(10_000, 3, 1L << 30));

        RunSpec sweep = read("{description: D., kind: sweep, sweep: {event_counts: [1, 5], waiting: false}}")
                .runs()
                .getFirst();
        assertThat(sweep.sweep()).isEqualTo(new RunSpec.SweepSpec(List.of(1, 5), 10, 102_400, false));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "consumer=1|consumer is unknown here; known fields:",
                "consumers=101|consumers must be an integer between 0 and 100, but is 101",
                "consumers=1.5|consumers must be an integer between 0 and 100, but is 1.5",
                "consumers=x|consumers must be an integer between 0 and 100, but is \"x\"",
                "partitions=0|partitions must be an integer between 1 and 1000, but is 0",
                "streams=10001|streams must be an integer between 1 and 10000, but is 10001",
                "replayers=-1|replayers must be an integer between 0 and 100, but is -1",
                "events.bytes=79|events.bytes must be 0 or between 80 and 4194304, but is 79",
                "events.size=79|events.size is unknown here; known fields: bytes, keys",
                "events=5|events must be an object, but is 5",
                "environment.server=mysql|environment.server must be one of postgres, postgres-pgq, kafka, redis, nats, none, but is 'mysql'",
                "environment.databases=0|environment.databases must be an integer between 1 and 64, but is 0",
                "environment.standbys=many|environment.standbys must be one of none, asynchronous, synchronous, quorum",
                "environment.server_options=5|environment.server_options must be an object, but is 5",
                "phases=[]|phases is missing: at least one phase",
                "phases.0.rate=0|phases.0.rate must be between 1 and 1000000, but is 0",
                "phases.0.rate=fast|phases.0.rate must be an integer or a multiple such as 5x or 0.5x, but is 'fast'",
                "phases.0.rate=5x|phases.0.rate is a multiple, but no measured phase before it has callers",
                "phases.0.callers=5|phases.0.rate or callers is required, but not both",
                "phases.0.async=true|phases.0.async requires callers",
                "phases.0.seconds=0|phases.0.seconds must be an integer between 1 and 86400, but is 0",
                "phases.0.name=A b|phases.0.name must be 1 to 40 lower-case letters, digits and hyphens, but is 'A b'",
                "phases.0.measured=yes please|phases.0.measured must be true or false",
                "phases.0.in_flight=0|phases.0.in_flight must be an integer between 1 and 100000000, but is 0",
                "phases.1.rate=5|--set phases.1.rate: the list has indexes 0 to 0, but not '1'",
                "phases.0.rate.x=5|--set phases.0.rate.x: 'rate' is not an object",
                "variables.A=5|variables is unknown here",
                "schedule_factor=2|schedule_factor must be a number between 1.0E-4 and 1.0, but is 2",
            })
    void read_invalidValue_namesFileFieldAndLimit(String override, String problem) {
        assertThatThrownBy(() -> read(SMALL, override))
                .isInstanceOf(InvalidWorkloadException.class)
                .hasMessageContaining(problem)
                .hasMessageMatching("(some.yaml, run some|--set .*): .*");
    }

    @Test
    void read_invalidFile_isRejected() {
        assertRejected("", "must contain an object");
        assertRejected("a: [", "invalid YAML in line 1");
        assertRejected("description: D.\nkind: phases\nkind: phases\n", "Duplicate");
        assertRejected("description: D.\n", "kind is missing: one of publish, phases, search, blast, sweep");
        assertRejected(
                "kind: dance\n",
                "kind must be one of publish, phases, search, blast, sweep, limits, queries, but is 'dance'");
        assertRejected("{description: D., kind: queries}", "kind must not be queries: scripts/run_queries.bash");
        assertRejected(SMALL.replace("description: Something.", ""), "description must be one line");
        assertRejected(SMALL + "runs: []", "runs must be a list of at least one run");
        assertRejected(SMALL + "runs: [{name: a}, {name: a}]", "the run name a is not unique");
        assertRejected(SMALL + "runs: [{consumers: 1}]", "the name of a run must be");
        assertRejected(SMALL + "runs: [{name: a, kind: search}]", "without kind");
        assertRejected(SMALL + "  - {name: steady, rate: 1000, seconds: 5}", "phases.1.name is not unique: steady");
        assertRejected(
                "{description: D., kind: phases, events: {keys: 3}, phases: [{name: a, callers: 4, seconds: 1}]}",
                "events.keys must be 0 or at least the callers of the phase a (4)");
        assertRejected(
                "{description: D., kind: phases, events: {bytes: 4000000},"
                        + " phases: [{name: a, callers: 4, events_per_call: 2, seconds: 1}]}",
                "phases.0.events_per_call times events.bytes must be at most 7549747, but is 8000000");
        assertRejected(
                "{description: D., kind: search, phases: [{name: a, callers: 4, seconds: 1}]}",
                "phases of a search must end with a phase that has a rate");
        assertRejected(
                "{description: D., kind: blast}", "events.bytes must be the size of a message of the blast, but is 0");
        assertRejected(
                "{description: D., kind: blast, events: {bytes: 79}}",
                "events.bytes must be 0 or between 80 and 4194304, but is 79");
        assertRejected(
                "{description: D., kind: blast, events: {bytes: 100}, blast: {cap_bytes: 99}}",
                "blast.cap_bytes must be at least events.bytes (100), but is 99");
        assertRejected(
                "{description: D., kind: sweep, sweep: {event_counts: [0]}}",
                "sweep.event_counts.0 must be an integer between 1 and 100000000, but is 0");
        assertRejected(
                "{description: D., kind: sweep, sweep: {buffer_bytes: 0}}",
                "sweep.buffer_bytes must be an integer between 1 and");
        assertRejected(
                SMALL.replace("phases\n", "search\n") + "search: {from_rate: 10, to_rate: 10}",
                "search.to_rate must be above from_rate (10), but is 10");
        assertRejected(
                "{description: D., kind: phases, environment: {databases: 2},"
                        + " phases: [{name: a, held_snapshot: true, rate: 1, seconds: 1}]}",
                "phases.0.held_snapshot requires kind phases and one PostgreSQL database");
        assertThatThrownBy(() -> FieldOverride.of("consumers")).hasMessageContaining("--set: must be like consumers=5");
    }

    private static void assertRejected(String text, String problem) {
        assertThatThrownBy(() -> read(text))
                .isInstanceOf(InvalidWorkloadException.class)
                .hasMessageStartingWith("some.yaml")
                .hasMessageContaining(problem);
    }

    private static Workload read(String text, String... overrides) {
        return WorkloadFile.read(
                "some.yaml",
                text,
                Arrays.stream(overrides).map(FieldOverride::of).toList());
    }

    @Test
    void read_limits_haveDefaults() {
        LimitsSpec limits = Objects.requireNonNull(
                WorkloadFile.read("some.yaml", """
                        description: x
                        kind: limits
                        limits: {parts: [cost, tail], storage: blocks, cost_seconds: 20}
                        """, List.of()).runs().getFirst().limits());

        assertThat(limits.parts()).containsExactly("cost", "tail");
        assertThat(limits.storage()).isEqualTo("blocks");
        assertThat(limits.integer(LimitsNumber.COST_SECONDS)).isEqualTo(20);
        assertThat(limits.integer(LimitsNumber.ROUNDS)).isEqualTo(3);
        assertThat(limits.round()).isEqualTo(Duration.ofSeconds(3));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{}|limits.parts must be a list of append, read",
                "{parts: [write]}|limits.parts must be a list of append, read",
                "{parts: [cost], rounds: 0}|limits.rounds must be an integer between 1 and 1000, but is 0",
                "{parts: [cost], storage: columns}|limits.storage must be one of rows, blocks, but is 'columns'",
                "{parts: [cost], round_seconds: 0.01}|limits.round_seconds must be a number between 0.05 and 3600.0, but is 0.01",
                "{parts: [cost], tail_seconds: 601}|limits.tail_seconds must be an integer between 1 and 600, but is 601",
                "{parts: [cost], warmup_seconds: -1}|limits.warmup_seconds must be an integer between 0 and 86400, but is -1",
                "{parts: [cost], seconds: 1}|limits.seconds is unknown here",
            })
    void read_invalidLimits_areNamed(String limits, String message) {
        assertThatExceptionOfType(InvalidWorkloadException.class)
                .isThrownBy(() -> WorkloadFile.read(
                        "some.yaml", "description: x\nkind: limits\nlimits: " + limits + "\n", List.of()))
                .withMessageContaining(message);
    }
}
