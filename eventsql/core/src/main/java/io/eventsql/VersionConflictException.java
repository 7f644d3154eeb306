package io.eventsql;

import org.jspecify.annotations.Nullable;

/**
 * Thrown if a key does not have the {@link ExpectedVersion} of a publish. Nothing was stored by that call. Read the key anew and
 * decide again.
 */
public final class VersionConflictException extends EventSqlException {
    private static final long serialVersionUID = 1L;

    private final String stream;
    private final String key;
    private final long expectedVersion;
    private final long actualVersion;

    public VersionConflictException(
            String stream, String key, long expectedVersion, long actualVersion, @Nullable Throwable cause) {
        super(
                "Not stored in stream " + stream + ": key " + key + " has version " + actualVersion
                        + ", not the expected " + expectedVersion,
                cause);
        this.stream = stream;
        this.key = key;
        this.expectedVersion = expectedVersion;
        this.actualVersion = actualVersion;
    }

    /** Returns the name of the stream. */
    public String stream() {
        return stream;
    }

    /** Returns the key. */
    public String key() {
        return key;
    }

    /** Returns the version that the publish expected. */
    public long expectedVersion() {
        return expectedVersion;
    }

    /** Returns the version that the key had; it may have risen since. */
    public long actualVersion() {
        return actualVersion;
    }
}
