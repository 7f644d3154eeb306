package io.eventsql.runner;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.runner.consumption.Apps;
import io.eventsql.runner.spec.RunSettings;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

class RunnerTest {
    private final StringWriter out = new StringWriter();
    private final StringWriter err = new StringWriter();

    @Test
    void settings_unset_areTheDocumentedDefaults() {
        RunSettings settings = settings(Map.of());

        assertThat(settings.load()).isEqualTo(new RunSettings.Load(5_000, 100_000, 1, 50, false, 5, 0));
        assertThat(settings.events()).isEqualTo(new RunSettings.Events(null, false, 1_000));
        assertThat(settings.stream()).isEqualTo(new RunSettings.Stream("account_created", 10, "app", 120));
        assertThat(settings.identity().runner()).isZero();
        assertThat(settings.identity().runners()).isEqualTo(1);
        assertThat(settings.identity().run()).matches("[0-9a-f]{8}");
    }

    @Test
    void settings_environment_isUsed() {
        Map<String, String> environment = new HashMap<>();
        environment.putAll(Map.of("EVENTS_RATE", "0", "EVENTS_TO_PUBLISH", "7", "EVENTS_BATCH_SIZE", "3"));
        environment.putAll(Map.of("CALLERS", "4", "ASYNC", "true", "WARMUP_SECONDS", "0", "EVENT_BYTES", "80"));
        environment.putAll(Map.of("KEYED", "true", "KEYS", "9", "STREAM", "orders", "PARTITIONS", "2"));
        environment.putAll(Map.of("CONSUMER", "c", "CONSUME_TIMEOUT", "30", "RUN_ID", "00ff00ff"));
        environment.putAll(Map.of("RUNNER_NUMBER", "1", "RUNNERS", "2", "WARMUP_MAX_SECONDS", "60"));

        assertThat(settings(environment))
                .isEqualTo(new RunSettings(
                        new RunSettings.Identity("00ff00ff", 1, 2),
                        new RunSettings.Stream("orders", 2, "c", 30),
                        new RunSettings.Load(0, 7, 3, 4, true, 0, 60),
                        new RunSettings.Events(80, true, 9)));
    }

    @Test
    void settings_option_overridesTheEnvironment() {
        RunSettings settings =
                settings(Map.of("EVENTS_RATE", "7", "KEYED", "true"), "--events-rate=8", "--keyed=false");

        assertThat(settings.load().eventsPerSecond()).isEqualTo(8);
        assertThat(settings.events().keyed()).isFalse();
    }

    @Test
    void settings_flagWithoutValue_isTrue() {
        assertThat(settings(Map.of(), "--async").load().async()).isTrue();
    }

    @Test
    void settings_emptyVariable_countsAsUnset() {
        assertThat(settings(Map.of("EVENTS_RATE", "")).load().eventsPerSecond()).isEqualTo(5_000);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "--events-rate=-1|--events-rate (EVENTS_RATE) must be between 0 and 1000000, but is -1",
                "--events-rate=1000001|--events-rate (EVENTS_RATE) must be between 0 and 1000000, but is 1000001",
                "--events-to-publish=0|--events-to-publish (EVENTS_TO_PUBLISH) must be between 1 and 1000000000, but is 0",
                "--events-batch-size=5001|--events-batch-size (EVENTS_BATCH_SIZE) must be between 1 and 5000, but is 5001",
                "--callers=0|--callers (CALLERS) must be between 1 and 10000, but is 0",
                "--event-bytes=79|--event-bytes (EVENT_BYTES) must be between 80 and 4194304, but is 79",
                "--event-bytes=4000000 --events-batch-size=2|--event-bytes (EVENT_BYTES) times --events-batch-size must be at"
                        + " most 7549747, but is 8000000",
                "--keys=0|--keys (KEYS) must be between 1 and 1000000, but is 0",
                "--keyed --keys=3 --events-rate=0 --callers=4|--keys (KEYS) must be at least the number of --callers (4)",
                "--partitions=1001|--partitions (PARTITIONS) must be between 1 and 1000, but is 1001",
                "--warmup-seconds=-1|--warmup-seconds (WARMUP_SECONDS) must be between 0 and 86400, but is -1",
                "--consume-timeout=0|--consume-timeout (CONSUME_TIMEOUT) must be between 1 and 86400, but is 0",
                "--runners=2 --runner-number=2|--runner-number (RUNNER_NUMBER) must be between 0 and 1, but is 2",
                "--runners=1001|--runners (RUNNERS) must be between 1 and 1000, but is 1001",
                "--run-id=xyz|--run-id (RUN_ID) must be 8 lower-case hexadecimal characters, but is 'xyz'",
                "--stream=Drop;|--stream (STREAM) must be letters (A to Z, a to z), digits, dots, underscores and hyphens",
                "--events-rate=abc|--events-rate",
                "--async=perhaps|--async",
            })
    void publish_invalidOption_namesItAndTheLimitAndExitsWith2(String options, String message) {
        String[] arguments = Stream.concat(Stream.of("publish"), Arrays.stream(options.split(" ")))
                .toArray(String[]::new);

        assertThat(execute(Map.of(), arguments)).isEqualTo(2);

        assertThat(err.toString()).contains(message);
    }

    @Test
    void publish_invalidVariable_exitsWith2() {
        assertThat(execute(Map.of("CALLERS", "many"), "publish")).isEqualTo(2);

        assertThat(err.toString()).contains("--callers", "many");
    }

    @Test
    void publish_noDatabase_exitsWith2() {
        assertThat(execute(Map.of(), "publish")).isEqualTo(2);

        assertThat(err.toString()).contains("DB0_HOST is missing");
    }

    @Test
    void publish_unknownOption_exitsWith2() {
        assertThat(execute(Map.of(), "publish", "--no-such-option")).isEqualTo(2);
    }

    @Test
    void publish_help_showsOptionsDefaultsExitCodesAndExamples() {
        assertThat(execute(Map.of(), "publish", "--help")).isZero();

        assertThat(out.toString())
                .contains(
                        "--events-rate",
                        "5000",
                        "--consume-timeout",
                        "Exit codes:",
                        "invalid input",
                        "Examples:",
                        "DB0_HOST");
    }

    @Test
    void help_listsTheCommands() {
        assertThat(execute(Map.of(), "--help")).isZero();

        assertThat(out.toString()).contains("publish", "summarize", "run", "Exit codes:", "Examples:");
    }

    @Test
    void withCommand_noCommand_isPublish() {
        assertThat(Runner.withCommand(new String[] {})).containsExactly("publish");
        assertThat(Runner.withCommand(new String[] {"--keyed"})).containsExactly("publish", "--keyed");
        assertThat(Runner.withCommand(new String[] {"--help"})).containsExactly("--help");
        assertThat(Runner.withCommand(new String[] {"summarize", "--run=1"})).containsExactly("summarize", "--run=1");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            nullValues = "-",
            value = {
                "-|-|-|1|http://localhost:8080",
                "APP_URL|http://a|-|1|http://a",
                "APP_URLS|http://a,http://b,http://c|-|3|http://a",
                "APP_URL|http://a,http://b|-|2|http://a",
                "APP_URLS|http://a,http://b|--app-url=http://x|1|http://x",
                "-|-|--app-url=http://x --app-url=http://y|2|http://x",
                "-|-|--app-url=http://x,http://y|2|http://x",
            })
    void appUrl_isSetOncePerMember(
            @Nullable String variable, @Nullable String value, @Nullable String options, int members, String first) {
        ParsedOptions parsed = new ParsedOptions();
        Map<String, String> environment = variable == null || value == null ? Map.of() : Map.of(variable, value);
        new CommandLine(parsed)
                .setDefaultValueProvider(new EnvironmentDefaults(environment))
                .parseArgs(options == null ? new String[0] : options.split(" "));

        try (Apps apps = parsed.apps.open()) {
            assertThat(apps.count()).isEqualTo(members);
            assertThat(apps.first().uri()).hasToString(first);
        }
    }

    /** Only parses options. */
    @Command
    private static final class ParsedOptions {
        @Mixin
        private PublishOptions options = new PublishOptions();

        @Mixin
        private AppOptions apps = new AppOptions();
    }

    private static RunSettings settings(Map<String, String> environment, String... arguments) {
        ParsedOptions parsed = new ParsedOptions();
        CommandLine commandLine = new CommandLine(parsed).setDefaultValueProvider(new EnvironmentDefaults(environment));
        commandLine.parseArgs(arguments);
        return parsed.options.settings(commandLine);
    }

    private int execute(Map<String, String> environment, String... arguments) {
        return Runner.commandLine(environment)
                .setOut(new PrintWriter(out, true))
                .setErr(new PrintWriter(err, true))
                .execute(arguments);
    }
}
