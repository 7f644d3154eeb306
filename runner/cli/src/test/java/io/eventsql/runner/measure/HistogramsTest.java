package io.eventsql.runner.measure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.HdrHistogram.Histogram;
import org.junit.jupiter.api.Test;

class HistogramsTest {

    @Test
    void decode_encoded_isTheSame() {
        Histogram histogram = Histograms.create();
        histogram.recordValueWithCount(1_234, 7);
        histogram.recordValue(9_000_000_000L);

        assertThat(Histograms.decode(Histograms.encode(histogram))).isEqualTo(histogram);
    }

    @Test
    void merge_differentRanges_keepsAllValues() {
        Histogram small = Histograms.create();
        small.recordValue(10);
        Histogram large = Histograms.create();
        large.recordValue(50_000_000_000L);

        Histogram merged = Histograms.merge(List.of(small, large));

        assertThat(merged.getTotalCount()).isEqualTo(2);
        assertThat(merged.getMinValue()).isEqualTo(10);
        assertThat(merged.getMaxValue()).isGreaterThanOrEqualTo(50_000_000_000L);
    }

    @Test
    void decode_somethingElse_isRejected() {
        assertThatThrownBy(() -> Histograms.decode("AAAA")).hasMessageStartingWith("not an encoded histogram");
    }

    @Test
    void percentiles_ofMicros_areMilliseconds() {
        Histogram histogram = Histograms.create();
        for (int micros = 1; micros <= 1_000; micros++) {
            histogram.recordValue(micros);
        }

        assertThat(Percentiles.ofMicros(histogram)).isEqualTo(new Percentiles(0.5, 0.9, 0.99, 0.999, 1, 0.501));
    }
}
