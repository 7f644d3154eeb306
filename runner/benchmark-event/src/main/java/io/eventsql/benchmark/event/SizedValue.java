package io.eventsql.benchmark.event;

import static java.nio.charset.StandardCharsets.US_ASCII;

/** The value with an exact size: {@code {"benchmark":"…","payload":"<random text>"}}. */
final class SizedValue {
    private static final byte[] PAYLOAD = ",\"payload\":\"".getBytes(US_ASCII);
    private static final byte[] CLOSING = "\"}".getBytes(US_ASCII);

    private SizedValue() {}

    static byte[] of(BenchmarkEvent event, int eventBytes) {
        AsciiWriter out = new AsciiWriter(new byte[eventBytes]);
        Marker.write(event, out);
        out.put(PAYLOAD);
        out.putRandomText(CLOSING.length);
        out.put(CLOSING);
        return out.bytes();
    }
}
