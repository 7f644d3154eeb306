package io.eventsql.spring.internal;

import io.eventsql.InvalidInputException;
import java.util.Locale;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;

/** Translates the library's names of settings into properties, as the application sets them. */
public final class PropertyNames {
    private static final Pattern SETTING = Pattern.compile("\\bsettings\\.([a-z]\\w*)");
    private static final Pattern CAPITAL = Pattern.compile("[A-Z]");

    private PropertyNames() {}

    /** Returns {@code maxEventBytes} as {@code max-event-bytes}. */
    public static String kebab(String name) {
        return CAPITAL.matcher(name).replaceAll(capital -> "-" + capital.group().toLowerCase(Locale.ROOT));
    }

    /** Returns the text with {@code eventsql.max-event-bytes} for {@code settings.maxEventBytes}. */
    public static String inText(String text) {
        return SETTING.matcher(text).replaceAll(PropertyNames::property);
    }

    private static String property(MatchResult setting) {
        return "eventsql." + kebab(setting.group(1));
    }

    /** Returns the exception with properties for settings in its message; any other exception as it is. */
    public static RuntimeException inException(RuntimeException exception) {
        return exception instanceof InvalidInputException invalid ? inException(invalid) : exception;
    }

    /** Returns the exception with properties for settings in its message and field. */
    public static InvalidInputException inException(InvalidInputException exception) {
        String field = inText(exception.field());
        String problem = inText(problem(exception));
        if (field.equals(exception.field()) && problem.equals(problem(exception))) {
            return exception;
        }
        InvalidInputException translated = new InvalidInputException(field, problem);
        translated.setStackTrace(exception.getStackTrace());
        return translated;
    }

    /** Returns the exception's message without its field. */
    public static String problem(InvalidInputException exception) {
        return String.valueOf(exception.getMessage())
                .substring(exception.field().length())
                .strip();
    }
}
