package io.eventsql.spring;

/** Names of headers that a listener method can get with {@code @Header}, in addition to the event's own. */
public final class EventSqlHeaders {
    /** The event's key, a {@code String}; absent if it has none. */
    public static final String KEY = "eventsql_key";
    /** The stream's name, a {@code String}. */
    public static final String STREAM = "eventsql_stream";
    /** The shard's number, an int. */
    public static final String SHARD = "eventsql_shard";
    /** The partition on its shard, an int. */
    public static final String PARTITION = "eventsql_partition";
    /** The offset in its partition, a long. */
    public static final String OFFSET = "eventsql_offset";
    /** The time at which it was stored, by the database's clock: a {@link java.time.Instant}. */
    public static final String PUBLISHED_AT = "eventsql_published_at";

    private EventSqlHeaders() {}
}
