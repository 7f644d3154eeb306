package io.eventsql.spring;

import org.jspecify.annotations.Nullable;

/** A method with {@link EventSqlListener} that cannot be a listener as it is written. */
public final class InvalidListenerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final String action;

    /**
     * @param listener the bean and its method
     * @param problem what is wrong with it
     * @param action what to do about it, as a sentence
     */
    public InvalidListenerException(String listener, String problem, String action, @Nullable Throwable cause) {
        super("@EventSqlListener on " + listener + ", " + problem, cause);
        this.action = action;
    }

    /** Returns what to do about it, as a sentence. */
    public String action() {
        return action;
    }
}
