package io.eventsql;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The form of every name that becomes part of a table name: it needs no quoting and can never inject SQL. */
final class Names {
    /** No double and no trailing underscore: {@code __} separates a stream from its partition in table names. */
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*");

    private Names() {}

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
