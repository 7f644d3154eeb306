package io.eventsql.runner.measure;

import java.util.concurrent.atomic.LongAdder;

/** The counters of one second. Thread-safe. */
final class Second {
    final LongAdder offered = new LongAdder();
    final LongAdder sent = new LongAdder();
    final LongAdder published = new LongAdder();
    final LongAdder failed = new LongAdder();
    final LongAdder missed = new LongAdder();
    final LongAdder delivered = new LongAdder();
    final SecondLatency publish = new SecondLatency();
    final SecondLatency endToEnd = new SecondLatency();

    void close() {
        publish.close();
        endToEnd.close();
    }
}
