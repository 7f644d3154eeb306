package io.eventsql.benchmark.settings;

import org.jspecify.annotations.Nullable;

/** A setting with which the app cannot start; the message names the variable and what is wrong with it. */
public final class InvalidSettingException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;

    public InvalidSettingException(String variable, String problem) {
        this(variable, problem, null);
    }

    public InvalidSettingException(String variable, String problem, @Nullable Throwable cause) {
        super(variable + " " + problem, cause);
    }
}
