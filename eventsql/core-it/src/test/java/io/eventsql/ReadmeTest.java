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

/** What the README shows is what the code is: its quick start stands in {@link QuickStartIT}, its settings are these. */
class ReadmeTest {
    private static final Path ROOT = Path.of("../..");
    private static final Pattern SETTING = Pattern.compile("\\| `(\\w+)` \\| `([^`]+)` \\|.*");

    @Test
    void quickStart_isTheTestedOne() throws IOException {
        List<String> tested = Files.readAllLines(Path.of("src/test/java/io/eventsql/QuickStartIT.java"));
        String shown = Files.readString(ROOT.resolve("README.md")).replaceAll("\\s+", " ");
        boolean inside = false;
        int compared = 0;
        for (String line : tested) {
            String text = line.strip();
            if (text.startsWith("// tag::") || text.startsWith("// end::")) {
                inside = text.startsWith("// tag::");
            } else if (inside && !text.isEmpty()) {
                assertThat(shown).contains(text.replaceAll("\\s+", " "));
                compared++;
            }
        }
        assertThat(compared).isGreaterThan(10);
    }

    @Test
    void settings_haveTheDefaultsShown() throws Exception {
        Map<String, String> shown = new LinkedHashMap<>();
        for (String line : Files.readAllLines(ROOT.resolve("README.md"))) {
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
}
