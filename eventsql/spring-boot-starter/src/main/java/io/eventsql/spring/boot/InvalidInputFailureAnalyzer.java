package io.eventsql.spring.boot;

import io.eventsql.InvalidInputException;
import java.util.Locale;
import java.util.regex.Pattern;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Has a value that EventSQL refuses at start shown with the property it comes from. */
final class InvalidInputFailureAnalyzer extends AbstractFailureAnalyzer<InvalidInputException> {
    private static final String SETTINGS = "settings.";
    private static final String STREAM = "stream.";
    private static final Pattern CAPITAL = Pattern.compile("[A-Z]");

    @Override
    protected FailureAnalysis analyze(Throwable rootFailure, InvalidInputException cause) {
        return new FailureAnalysis(String.valueOf(cause.getMessage()), action(cause.field()), cause);
    }

    private static String action(String field) {
        if (field.startsWith(SETTINGS)) {
            return "Change eventsql." + kebab(field.substring(SETTINGS.length())) + ".";
        }
        if (field.equals("stream.name")) {
            return "Change the name: of the StreamSpec bean, or below eventsql.streams.";
        }
        if (field.startsWith(STREAM)) {
            return "Change the StreamSpec bean or eventsql.streams.<name>." + kebab(field.substring(STREAM.length()))
                    + ": what a stream is made of stays as it was created.";
        }
        return "Change " + field + ".";
    }

    private static String kebab(String name) {
        return CAPITAL.matcher(name).replaceAll(capital -> "-" + capital.group().toLowerCase(Locale.ROOT));
    }
}
