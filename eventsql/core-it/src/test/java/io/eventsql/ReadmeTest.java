package io.eventsql;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The pages show what the code does: their examples are tagged regions of {@link QuickStartIT}, the settings are these. */
class ReadmeTest {
    private static final Path ROOT = Path.of("../..");
    private static final Path TESTED = Path.of("src/test/java/io/eventsql/QuickStartIT.java");
    private static final Pattern TAG = Pattern.compile("// (tag|end)::([\\w-]+)\\[]");
    private static final Pattern SETTING = Pattern.compile("\\| `(\\w+)` \\| `([^`]+)` \\|.*");

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
    })
    void example_isTheTestedOne(String tag, String page) throws IOException {
        String tested = regions().getOrDefault(tag, "");
        assertThat(tested).as("region %s", tag).isNotBlank();
        assertThat(withoutIndentation(Files.readAllLines(ROOT.resolve(page)))).contains(tested);
    }

    @Test
    void settings_haveTheDefaultsShown() throws Exception {
        Map<String, String> shown = new LinkedHashMap<>();
        for (String line : Files.readAllLines(ROOT.resolve("docs/settings.md"))) {
            Matcher setting = SETTING.matcher(line);
            if (setting.matches()) {
                shown.put(setting.group(1), setting.group(2));
            }
        }
        Settings defaults = Settings.defaults();
        Map<String, String> actual = new LinkedHashMap<>();
        for (var method : Stream.of(Settings.class.getDeclaredMethods())
                .filter(m -> Modifier.isPublic(m.getModifiers()) && !Modifier.isStatic(m.getModifiers()))
                .toList()) {
            actual.put(method.getName(), String.valueOf(method.invoke(defaults)));
        }
        assertThat(shown).containsExactlyInAnyOrderEntriesOf(actual);
    }

    /** The tagged regions by their names; one that is interrupted by untagged lines is joined. */
    private static Map<String, String> regions() throws IOException {
        Map<String, String> regions = new LinkedHashMap<>();
        String open = "";
        for (String line : Files.readAllLines(TESTED)) {
            Matcher tag = TAG.matcher(line.strip());
            if (tag.matches()) {
                open = tag.group(1).equals("tag") ? tag.group(2) : "";
            } else if (!open.isEmpty()) {
                regions.merge(open, withoutIndentation(List.of(line)), String::concat);
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
