package io.eventsql;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if input can never succeed. Names the field and its limit; nothing was stored or sent.
 *
 * <p>Fields are named after the parameter and its property, separated by a dot: {@code event.key}, {@code
 * event.headers[type]}, {@code stream.partitions}, {@code consumer.pageEvents}, {@code retry.maxAttempts}, {@code
 * settings.bufferBytes}, {@code position.offset}; an argument without properties by its name alone: {@code stream}.
 */
public final class InvalidInputException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;
    private static final int SHOWN_CHARACTERS_MAX = 80;
    private static final String SETTINGS = "settings.";

    private final String field;
    private final @Nullable String setting;

    /**
     * Creates an exception whose message is the field followed by the problem.
     *
     * @param field the rejected field, such as {@code event.key}
     * @param problem what is wrong with it, such as {@code must not be null}
     */
    public InvalidInputException(String field, String problem) {
        super(field + " " + problem);
        this.field = field;
        this.setting = field.startsWith(SETTINGS) ? field.substring(SETTINGS.length()) : null;
    }

    /**
     * Creates an exception for a field whose limit is a setting; the message names the setting, too.
     *
     * @param setting the method of {@link Settings}, such as {@code maxEventBytes}
     */
    public InvalidInputException(String field, String problem, String setting) {
        super(field + " " + problem + " (" + SETTINGS + setting + ")");
        this.field = field;
        this.setting = setting;
    }

    /** Returns the rejected field, such as {@code event.key}. */
    public String field() {
        return field;
    }

    /**
     * Returns the setting to change: the rejected one, or the one that limits the rejected field, named like the method of
     * {@link Settings}, such as {@code maxEventBytes}. Empty if no setting is involved.
     */
    public Optional<String> setting() {
        return Optional.ofNullable(setting);
    }

    static <T> T requireGiven(String field, @Nullable T value) {
        if (value == null) {
            throw new InvalidInputException(field, "must not be null");
        }
        return value;
    }

    static void requireRange(String field, long value, long min, long max) {
        if (value < min || value > max) {
            throw new InvalidInputException(field, "must be between " + min + " and " + max + ", but is " + value);
        }
    }

    /** Returns the value in a form that is safe in a message: quoted, control characters escaped, truncated. */
    static String shown(@Nullable String value) {
        if (value == null) {
            return "null";
        }
        StringBuilder text = new StringBuilder("'");
        value.codePoints()
                .limit(SHOWN_CHARACTERS_MAX)
                .forEach(c -> text.append(Character.isISOControl(c) ? "\\u%04x".formatted(c) : Character.toString(c)));
        return text.append(value.length() > SHOWN_CHARACTERS_MAX ? "…'" : "'").toString();
    }
}
