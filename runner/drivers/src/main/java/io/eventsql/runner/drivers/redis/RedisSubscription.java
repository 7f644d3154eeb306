package io.eventsql.runner.drivers.redis;

import io.eventsql.runner.driver.DeliveryListener;

/** A consumer with its own thread. */
final class RedisSubscription implements AutoCloseable {
    private final RedisReader reader;
    private final DeliveryListener listener;
    private final Thread thread;

    /** Starts consuming. */
    RedisSubscription(RedisReader reader, String name, DeliveryListener listener) {
        this.reader = reader;
        this.listener = listener;
        this.thread = Thread.ofPlatform().name("redis-" + name).start(this::consume);
    }

    private void consume() {
        try {
            reader.read(page -> listener.delivered(page, RedisReader::key, RedisReader::value));
        } catch (RuntimeException e) {
            listener.failed(e);
        }
    }

    @Override
    public void close() {
        reader.stop();
        try {
            thread.join();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
