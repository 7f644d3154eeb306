package io.eventsql.runner.driver;

/** A connection to a system that keeps events. Thread-safe. Closing ends its consumers too. */
public interface Driver extends AutoCloseable {

    /** The server's name and version, such as {@code PostgreSQL 18.6}. */
    String version();

    /**
     * Makes a stream that is empty and can be published to and consumed at once.
     *
     * @param name lower-case letters, digits and underscores, at most 40 characters; not there yet
     * @param partitions how many parts it may be handled in at the same time; a system without partitions ignores it
     */
    void createStream(String name, int partitions) throws Exception;

    /** What publishes to a stream; one for any number of threads. */
    PublishTarget publisher(String stream);

    /**
     * Starts to consume a stream from its first event on. Each consumer gets all events.
     *
     * @param consumer lower-case letters, digits and underscores
     * @param listener gets what arrives, on threads of the driver; an event counts as consumed when that call returns
     * @return closing it stops consuming and waits for the call that is under way
     */
    AutoCloseable consume(String stream, String consumer, DeliveryListener listener) throws Exception;

    /**
     * Removes all events of a stream that nobody consumes and nobody publishes to.
     *
     * @throws UnsupportedOperationException if the system cannot
     */
    void clear(String stream) throws Exception;

    @Override
    void close();
}
