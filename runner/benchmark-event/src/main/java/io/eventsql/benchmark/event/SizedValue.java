package io.eventsql.benchmark.event;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.util.concurrent.ThreadLocalRandom;

/**
 * The value with an exact size: {@code {"benchmark":"…","payload":"<random text>"}}. The text is printable ASCII without
 * quotes and backslashes, so that JSON needs no escapes. It is copied from a pool, because generating it for each event
 * would take longer than publishing. Thread-safe.
 */
final class SizedValue {
    private static final byte[] PAYLOAD = ",\"payload\":\"".getBytes(US_ASCII);
    private static final byte[] CLOSING = "\"}".getBytes(US_ASCII);
    private static final byte[] POOL = new byte[256 << 10];

    static {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        for (int i = 0; i < POOL.length; ) {
            char c = (char) random.nextInt(' ', '~' + 1);
            if (c != '"' && c != '\'' && c != '\\') {
                POOL[i++] = (byte) c;
            }
        }
    }

    private SizedValue() {}

    static byte[] of(BenchmarkEvent event, int eventBytes) {
        byte[] value = new byte[eventBytes];
        AsciiWriter out = new AsciiWriter(value);
        Marker.write(event, out);
        out.put(PAYLOAD);
        int end = eventBytes - CLOSING.length;
        putRandomText(value, Marker.LENGTH + PAYLOAD.length, end);
        out.moveTo(end);
        out.put(CLOSING);
        return value;
    }

    /** Fills a part of the array from a random position of the pool. */
    private static void putRandomText(byte[] value, int from, int end) {
        int poolFrom = ThreadLocalRandom.current().nextInt(POOL.length);
        for (int at = from; at < end; poolFrom = 0) {
            int chunk = Math.min(end - at, POOL.length - poolFrom);
            System.arraycopy(POOL, poolFrom, value, at, chunk);
            at += chunk;
        }
    }
}
