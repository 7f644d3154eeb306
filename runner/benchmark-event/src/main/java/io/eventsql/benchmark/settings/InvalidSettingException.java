package io.eventsql.benchmark.settings;

import org.jspecify.annotations.Nullable;

/** Thrown for an invalid setting. The message names the variable and the problem. */
public final class InvalidSettingException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    public InvalidSettingException(String variable, String problem) {
        this(variable, problem, null);
    }

    public InvalidSettingException(String variable, String problem, @Nullable Throwable cause) {
        super(variable + " " + problem, cause);
    }
}
