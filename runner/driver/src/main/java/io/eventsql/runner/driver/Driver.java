package io.eventsql.runner.driver;

/** A connection to a system that stores events. Thread-safe. Its consumers are closed before it. */
public interface Driver extends AutoCloseable {

    /** Returns the server's name and version, such as {@code PostgreSQL 18.6}. */
    String version() throws Exception;

    /**
     * Creates an empty stream that is immediately ready for publishing and consuming.
     *
     * @param name the name of a new stream: lower-case letters, digits and underscores, at most 40 characters
     * @param partitions the number of partitions; ignored by systems without partitions
     */
    void createStream(String name, int partitions) throws Exception;

    /** Returns a publisher for a stream, shared by any number of threads. */
    PublishTarget publisher(String stream);

    /**
     * Starts a consumer at the first event of a stream. Each consumer receives all events.
     *
     * @param consumer the name of the consumer: lower-case letters, digits and underscores
     * @param listener receives the events on threads of the driver; an event counts as consumed when the callback
     *     returns
     * @return closes the consumer and waits for a callback in progress
     */
    AutoCloseable consume(String stream, String consumer, DeliveryListener listener) throws Exception;

    /**
     * Deletes all events of a stream that currently has neither consumers nor publishers.
     *
     * @throws UnsupportedOperationException if the system does not support it
     */
    void clear(String stream) throws Exception;

    @Override
    void close();
}
