package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The pages show what the code does: their examples are tagged regions of tests, their defaults the code's. */
class ReadmeTest {
    private static final Path ROOT = Path.of("../..");
    private static final Path TESTS = Path.of("src/test/java/io/eventsql");
    private static final List<String> TESTED = List.of("QuickStartIT.java", "erase/CryptoShreddingIT.java");
    private static final Pattern TAG = Pattern.compile("// (tag|end)::([\\w-]+)\\[]");
    private static final Pattern DEFAULT = Pattern.compile("\\| `(\\w+)` \\| `([^`]+)` \\|.*");

    @ParameterizedTest
    @CsvSource({
        "open, README.md",
        "publish, README.md",
        "consume, README.md",
        "close, README.md",
        "outbox, README.md",
        "outbox, docs/outbox.md",
        "outbox-jooq, docs/outbox.md",
        "handler, README.md",
        "handler, docs/consumers.md",
        "transactional-handler, docs/consumers.md",
        "control, docs/consumers.md",
        "crypto-shredding, docs/erasure.md",
    })
    void example_isTheTestedOne(String tag, String page) throws IOException {
        String tested = regions().getOrDefault(tag, "");
        assertThat(tested).as("region %s", tag).isNotBlank();
        assertThat(withoutIndentation(Files.readAllLines(ROOT.resolve(page)))).contains(tested);
    }

    @Test
    void settings_haveTheDefaultsShown() throws Exception {
        assertThat(shownDefaults("docs/settings.md"))
                .containsExactlyInAnyOrderEntriesOf(values(Settings.defaults(), Set.of()));
    }

    @Test
    void consumerOptions_haveTheDefaultsShown() throws Exception {
        assertThat(shownDefaults("docs/consumers.md"))
                .containsExactlyInAnyOrderEntriesOf(values(
                        ConsumerSpec.of("order_events", "mailer"),
                        Set.of("stream", "name", "retry", "equals", "hashCode", "toString")));
    }

    private static Map<String, String> shownDefaults(String page) throws IOException {
        Map<String, String> shown = new LinkedHashMap<>();
        for (String line : Files.readAllLines(ROOT.resolve(page))) {
            Matcher row = DEFAULT.matcher(line);
            if (row.matches()) {
                shown.put(row.group(1), row.group(2));
            }
        }
        return shown;
    }

    /** What the public methods without parameters return. */
    private static Map<String, String> values(Object options, Set<String> without) throws Exception {
        Map<String, String> values = new LinkedHashMap<>();
        for (Method method : options.getClass().getDeclaredMethods()) {
            if (Modifier.isPublic(method.getModifiers())
                    && !Modifier.isStatic(method.getModifiers())
                    && method.getParameterCount() == 0
                    && !without.contains(method.getName())) {
                values.put(method.getName(), String.valueOf(method.invoke(options)));
            }
        }
        return values;
    }

    /** The tagged regions by their names; one that is interrupted by untagged lines is joined. */
    private static Map<String, String> regions() throws IOException {
        Map<String, String> regions = new LinkedHashMap<>();
        String open = "";
        for (String file : TESTED) {
            for (String line : Files.readAllLines(TESTS.resolve(file))) {
                Matcher tag = TAG.matcher(line.strip());
                if (tag.matches()) {
                    open = tag.group(1).equals("tag") ? tag.group(2) : "";
                } else if (!open.isEmpty()) {
                    regions.merge(open, withoutIndentation(List.of(line)), String::concat);
                }
            }
        }
        return regions;
    }

    private static String withoutIndentation(List<String> lines) {
        StringBuilder text = new StringBuilder();
        for (String line : lines) {
            if (!line.isBlank()) {
                text.append(line.strip()).append('\n');
            }
        }
        return text.toString();
    }
}
