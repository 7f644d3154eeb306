package io.eventsql.runner.sample;

import org.jspecify.annotations.Nullable;

/**
 * A process to look at.
 *
 * @param name what its columns begin with
 * @param process its id; {@code null}: it is a container
 * @param container the container's name; {@code null}: it is a process
 */
public record SampledProcess(
        String name, @Nullable Long process, @Nullable String container) {
    private static final String DOCKER = "docker:";

    /**
     * Reads {@code database-0=1234} or {@code database-0=docker:CONTAINER}.
     *
     * @throws IllegalArgumentException if it is neither
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
