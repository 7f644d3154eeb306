package io.eventsql.internal.thread;

import java.util.function.Consumer;

/** Describes and logs what code of the application throws, such as a handler: an error may fail to describe itself. Thread-safe. */
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
