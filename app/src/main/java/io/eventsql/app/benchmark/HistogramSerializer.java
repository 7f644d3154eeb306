package io.eventsql.app.benchmark;

import java.nio.ByteBuffer;
import java.util.Base64;
import org.HdrHistogram.Histogram;
import org.springframework.boot.jackson.JacksonComponent;
import tools.jackson.core.JsonGenerator;
import tools.jackson.databind.SerializationContext;
import tools.jackson.databind.ValueSerializer;

/** Serializes a histogram losslessly as Base64 of HdrHistogram's compressed encoding. */
@JacksonComponent
final class HistogramSerializer extends ValueSerializer<Histogram> {

    @Override
    public void serialize(Histogram histogram, JsonGenerator json, SerializationContext context) {
        json.writeString(encode(histogram));
    }

    static String encode(Histogram histogram) {
        ByteBuffer buffer = ByteBuffer.allocate(histogram.getNeededByteBufferCapacity());
        int length = histogram.encodeIntoCompressedByteBuffer(buffer);
        byte[] compressed = new byte[length];
        buffer.get(0, compressed);
        return Base64.getEncoder().encodeToString(compressed);
    }
}
