package io.eventsql.eventsdb;

import static java.util.stream.Collectors.joining;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Map.Entry;
import java.util.regex.Pattern;

/** The settings of {@code postgresql.conf}, in its order. Immutable. */
final class PostgresConf {

    private static final Pattern LINE = Pattern.compile(
            "\\s*(?<name>[a-z_.]+)\\s*=\\s*(?:'(?<quoted>(?:[^']|'')*)'|(?<plain>[^\\s#']+))\\s*(?:#.*)?");

    private final Map<String, String> settings;

    private PostgresConf(Map<String, String> settings) {
        this.settings = settings;
    }

    /** Returns the settings of the file in this module's jar. */
    static PostgresConf load() {
        return parse(Resources.text("postgresql.conf"));
    }

    /**
     * @throws IllegalArgumentException for a line that is neither a setting, a comment nor empty, and for a repeated
     *     setting
     */
    static PostgresConf parse(String text) {
        var settings = new LinkedHashMap<String, String>();
        text.lines()
                .filter(line -> !line.isBlank() && !line.stripLeading().startsWith("#"))
                .forEach(line -> {
                    var match = LINE.matcher(line);
                    if (!match.matches()) {
                        throw new IllegalArgumentException("not a setting: " + line);
                    }
                    String quoted = match.group("quoted");
                    String value = quoted == null ? match.group("plain") : quoted.replace("''", "'");
                    if (settings.put(match.group("name"), value) != null) {
                        throw new IllegalArgumentException("set twice: " + match.group("name"));
                    }
                });
        return new PostgresConf(settings);
    }

    /** Returns a copy with some settings added or replaced. */
    PostgresConf with(Map<String, String> overrides) {
        var merged = new LinkedHashMap<>(settings);
        merged.putAll(overrides);
        return new PostgresConf(merged);
    }

    Map<String, String> settings() {
        return Map.copyOf(settings);
    }

    /** Returns the text of a configuration file with these settings. */
    String text() {
        return settings.entrySet().stream().map(PostgresConf::line).collect(joining("\n", "", "\n"));
    }

    private static String line(Entry<String, String> setting) {
        return setting.getKey() + " = '" + setting.getValue().replace("'", "''") + "'";
    }
}
