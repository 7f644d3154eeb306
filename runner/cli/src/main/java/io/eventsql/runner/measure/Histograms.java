package io.eventsql.runner.measure;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import java.util.zip.DataFormatException;
import org.HdrHistogram.Histogram;

/** Histograms of microseconds and their JSON form: base64 of HdrHistogram's compressed encoding. */
public final class Histograms {
    /** Values are recorded with a relative error below 0.1 %. */
    private static final int SIGNIFICANT_DIGITS = 3;

    private Histograms() {}

    /** Creates an empty auto-resizing histogram, which neither clamps nor drops values. */
    public static Histogram create() {
        return new Histogram(SIGNIFICANT_DIGITS);
    }

    /** Encodes a histogram. */
    public static String encode(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(buffer.array(), length));
    }

    /**
     * Decodes a histogram.
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

    /** Merges several histograms. */
    public static Histogram merge(Iterable<Histogram> histograms) {
        Histogram merged = create();
        histograms.forEach(merged::add);
        return merged;
    }
}
