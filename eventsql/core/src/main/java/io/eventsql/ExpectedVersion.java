package io.eventsql;

/**
 * The version of its key that a publish expects: how many events of the key were stored before it, in the order of the stream.
 * If the key has another version, the publish stores nothing and fails with {@link VersionConflictException}. For streams with
 * {@link StreamSpec#withKeyVersions}. Immutable.
 */
public final class ExpectedVersion {
    private static final long ANY_VERSION = -1;

    /** No version is expected. */
    public static final ExpectedVersion ANY = new ExpectedVersion(ANY_VERSION);

    /** No event of the key was ever stored: version 0. */
    public static final ExpectedVersion NONE = new ExpectedVersion(0);

    private final long version;

    private ExpectedVersion(long version) {
        this.version = version;
    }

    /**
     * Returns the expectation of a version.
     *
     * @param version how many events of the key were stored: 0 or more
     * @throws InvalidInputException if it is negative
     */
    public static ExpectedVersion of(long version) {
        InvalidInputException.requireRange("expectedVersion", version, 0, Long.MAX_VALUE);
        return version == 0 ? NONE : new ExpectedVersion(version);
    }

    /** Returns whether any version will do. */
    public boolean isAny() {
        return version == ANY_VERSION;
    }

    /**
     * Returns the version.
     *
     * @throws IllegalStateException if {@link #isAny}
     */
    public long version() {
        if (isAny()) {
            throw new IllegalStateException("any version is expected");
        }
        return version;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ExpectedVersion expected && expected.version == version;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(version);
    }

    @Override
    public String toString() {
        return isAny() ? "any version" : "version " + version;
    }
}
