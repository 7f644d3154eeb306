package io.eventsql.runner.sample;

import org.jspecify.annotations.Nullable;

/**
 * A process or container to sample.
 *
 * @param name the prefix of its columns
 * @param process the process id; {@code null} for a container
 * @param container the name of the container; {@code null} for a process
 */
public record SampledProcess(
        String name, @Nullable Long process, @Nullable String container) {
    private static final String DOCKER = "docker:";

    /**
     * Parses {@code database-0=1234} or {@code database-0=docker:CONTAINER}.
     *
     * @throws IllegalArgumentException if the text has another form
     */
    public static SampledProcess of(String text) {
        int equals = text.indexOf('=');
        String name = text.substring(0, Math.max(0, equals));
        String value = text.substring(equals + 1);
        if (name.matches("[A-Za-z0-9_-]{1,40}")) {
            if (value.matches("[0-9]{1,10}")) {
                return new SampledProcess(name, Long.valueOf(value), null);
            }
            if (value.startsWith(DOCKER) && value.length() > DOCKER.length()) {
                return new SampledProcess(name, null, value.substring(DOCKER.length()));
            }
        }
        throw new IllegalArgumentException("must be NAME=PID or NAME=docker:CONTAINER, but is '" + text + "'");
    }
}
