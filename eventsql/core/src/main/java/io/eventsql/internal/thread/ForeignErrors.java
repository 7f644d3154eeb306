package io.eventsql.internal.thread;

import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Examines, describes and logs what code of the application throws, such as a handler or a pool: an error may fail to describe itself,
 * and its causes may refer to each other. Thread-safe.
 */
public final class ForeignErrors {
    private static final int TEXT_LENGTH_MAX = 4_000;

    private ForeignErrors() {}

    /** Returns the error as text, shortened. */
    public static String text(Throwable error) {
        String text;
        try {
            text = "" + error;
        } catch (Throwable e) { // also exceptions that are not declared, as of languages without checked ones
            text = error.getClass().getName() + ", whose message fails with "
                    + e.getClass().getName();
        }
        return text.length() <= TEXT_LENGTH_MAX ? text : text.substring(0, TEXT_LENGTH_MAX);
    }

    /** Returns the error and its causes, each once: a cause may refer back to an error that it has caused. */
    public static List<Throwable> withCauses(Throwable error) {
        List<Throwable> errors = new ArrayList<>();
        Set<Throwable> known = Collections.newSetFromMap(new IdentityHashMap<>());
        for (@Nullable Throwable cause = error; cause != null && known.add(cause); cause = cause.getCause()) {
            errors.add(cause);
        }
        return errors;
    }

    /**
     * Logs the error.
     *
     * @param line logs it; called again with a substitute if that fails, because logging calls methods of the error
     */
    public static void log(Throwable error, Consumer<Throwable> line) {
        try {
            line.accept(error);
        } catch (Throwable e) {
            line.accept(new Undescribed(text(error)));
        }
    }

    /** Replaces such an error in the log. */
    private static final class Undescribed extends Exception {
        private static final long serialVersionUID = 1L;

        private Undescribed(String text) {
            super(text, null, false, false); // its own stack trace says nothing of the error
        }
    }
}
