package io.eventsql.internal.relay;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class PageSizeTest {
    private final PageSize size = new PageSize(100, 1_000);

    @Test
    void halve_toOne_thenGrowsToLimit() {
        assertThat(size.isReduced()).isFalse();
        size.halve(100);
        assertThat(size.events()).isEqualTo(50);
        size.halve(7); // a page with fewer events than allowed
        assertThat(size.events()).isEqualTo(3);
        size.halve(3);
        size.halve(1);
        assertThat(size.events()).isOne();
        assertThat(size.isReduced()).isTrue();
        for (int i = 0; i < 7; i++) {
            size.grow();
        }
        assertThat(size.events()).isEqualTo(100);
        assertThat(size.isReduced()).isFalse();
    }
}
