package io.eventsql.runner.measure;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;

/** Histograms of microseconds, and their form in JSON: base64 of HdrHistogram's compressed encoding. */
public final class Histograms {
    /** Values are kept to one part in a thousand. */
    private static final int SIGNIFICANT_DIGITS = 3;

    private Histograms() {}

    /** An empty one that grows with its values: it has no highest value at which it would clamp or drop. */
    public static Histogram create() {
        return new Histogram(SIGNIFICANT_DIGITS);
    }

    /** Its form in JSON. */
    public static String encode(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(buffer.array(), length));
    }

    /**
     * The histogram that was encoded.
     *
     * @throws IllegalArgumentException if the text is not an encoded histogram
     */
    public static Histogram decode(String base64) {
        try {
            ByteBuffer buffer = ByteBuffer.wrap(Base64.getDecoder().decode(base64));
            return Histogram.decodeFromCompressedByteBuffer(buffer, 0);
        } catch (DataFormatException | RuntimeException e) {
            throw new IllegalArgumentException("not an encoded histogram: " + e.getMessage(), e);
        }
    }

    /** All values of several histograms in one. */
    public static Histogram merge(Iterable<Histogram> histograms) {
        Histogram merged = create();
        histograms.forEach(merged::add);
        return merged;
    }
}
