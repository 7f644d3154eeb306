package io.eventsql;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Validates names that become part of table names: they need no quoting and cannot inject SQL. */
final class Names {
    /** No double or trailing underscore: in table names {@code __} separates the stream from its partition. */
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*");

    private static final Pattern SHARD_NAME = Pattern.compile("[\\p{Alnum}._-]{1,60}");

    private Names() {}

    /** Validates the name of a shard, which appears only in log messages, meters and the like. */
    static String requireShardName(String field, @Nullable String name) {
        if (name == null || !SHARD_NAME.matcher(name).matches()) {
            throw new InvalidInputException(
                    field,
                    "must be named with 1 to 60 letters, digits, dots, hyphens and underscores, but a name is "
                            + InvalidInputException.shown(name));
        }
        return name;
    }

    static String requireName(String field, @Nullable String name, int maxLength) {
        if (name == null || name.length() > maxLength || !NAME.matcher(name).matches()) {
            throw new InvalidInputException(
                    field,
                    "must be lower-case letters, digits and single underscores, start with a letter and have at most "
                            + maxLength + " characters, but is " + InvalidInputException.shown(name));
        }
        return name;
    }
}
