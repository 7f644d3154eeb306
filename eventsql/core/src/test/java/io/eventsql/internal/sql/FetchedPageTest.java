package io.eventsql.internal.sql;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.EventPosition;
import io.eventsql.StoredEvent;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class FetchedPageTest {
    private static FetchedPage page(long first, long next, long bytes, long... offsets) {
        List<StoredEvent> events = LongStream.of(offsets)
                .mapToObj(offset -> new StoredEvent(
                        new EventPosition("orders", 0, 0, offset), null, new byte[] {1}, Map.of(), Instant.EPOCH))
                .toList();
        return new FetchedPage(first, next, true, events, bytes, Map.of());
    }

    @Test
    void split_eventsFitIntoOnePage_isThePage() {
        FetchedPage page = page(5, 8, 10, 5, 6, 7);

        assertThat(page.split(3)).containsExactly(page);
    }

    @Test
    void split_rangeWithoutEvents_isTheRange() {
        FetchedPage missing = FetchedPage.ofMissing(5, 100);

        assertThat(missing.split(10)).containsExactly(missing);
    }

    /** The parts follow each other without a gap or an overlap, and have the page's memory in total. */
    @Test
    void split_gapsAnywhere_partsCoverTheRange() {
        FetchedPage page = page(5, 30, 1_003, 6, 7, 11, 12, 20, 21, 25);

        List<FetchedPage> parts = page.split(2);

        assertThat(parts).extracting(part -> part.events().size()).containsExactly(2, 2, 2, 1);
        assertThat(parts).extracting(FetchedPage::firstOffset).containsExactly(5L, 8L, 13L, 22L);
        assertThat(parts).extracting(FetchedPage::nextOffset).containsExactly(8L, 13L, 22L, 30L);
        assertThat(parts).extracting(FetchedPage::endsAtHead).containsExactly(false, false, false, true);
        assertThat(parts.stream().mapToLong(FetchedPage::bytes).sum()).isEqualTo(1_003);
        assertThat(parts.stream().flatMap(part -> part.events().stream())).containsExactlyElementsOf(page.events());
    }

    @Test
    void before_endWithinThePage_endsThereAsAtTheHead() {
        FetchedPage page = page(5, 9, 40, 5, 6, 7, 8);

        FetchedPage part = page.before(7);

        assertThat(part.firstOffset()).isEqualTo(5);
        assertThat(part.nextOffset()).isEqualTo(7);
        assertThat(part.endsAtHead()).isTrue();
        assertThat(part.events()).containsExactlyElementsOf(page.events().subList(0, 2));
        assertThat(part.bytes()).isEqualTo(20);
        assertThat(page.before(9)).isEqualTo(page);
    }

    @Test
    void before_endBelowThePage_isEmpty() {
        assertThat(page(5, 9, 40, 5, 6, 7, 8).before(3).isEmpty()).isTrue();
    }
}
