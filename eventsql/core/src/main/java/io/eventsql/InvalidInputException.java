package io.eventsql;

import org.jspecify.annotations.Nullable;

/** Input that can never succeed. Names the field and its limit; nothing was stored, nothing was sent. */
public final class InvalidInputException extends IllegalArgumentException {
    private static final long serialVersionUID = 1L;
    private static final int SHOWN_CHARACTERS_MAX = 80;

    private final String field;

    public InvalidInputException(String field, String problem) {
        super(field + " " + problem);
        this.field = field;
    }

    /** The field that was refused, such as {@code event.key}. */
    public String field() {
        return field;
    }

    static void requireRange(String field, long value, long min, long max) {
        if (value < min || value > max) {
            throw new InvalidInputException(field, "must be between " + min + " and " + max + ", but is " + value);
        }
    }

    /** A value as it is safe to show in a message: quoted, control characters escaped, shortened. */
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
