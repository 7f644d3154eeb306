package io.eventsql.internal.consume;

import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.internal.sql.LeaseTable.TakenPartition;
import org.junit.jupiter.api.Test;

class PartitionProgressTest {
    private final PartitionProgress progress = new PartitionProgress(new TakenPartition(0, 1, 0, 100));

    @Test
    void recordHandled_lastOfAll_advancesPastAllOthers() {
        for (int offset = 9; offset > 0; offset--) {
            progress.recordHandled(offset, offset + 1);
        }
        assertThat(progress.handledOffset()).isZero();

        progress.recordHandled(0, 1);

        assertThat(progress.handledOffset()).isEqualTo(10);
    }

    @Test
    void recordCommitted_insideARangeAhead_continuesAtItsEnd() {
        progress.recordHandled(5, 10);

        progress.recordCommitted(7);

        assertThat(progress.committedOffset()).isEqualTo(7);
        assertThat(progress.handledOffset()).isEqualTo(10);
    }

    @Test
    void compactedRanges_countAsHandled_butNotAsEvents() {
        progress.recordMissing(2, 5);
        progress.recordHandled(2, 5);
        assertThat(progress.uncommittedEvents()).isZero();

        progress.recordHandled(0, 2);

        assertThat(progress.handledOffset()).isEqualTo(5);
        assertThat(progress.commitUpTo(5).events()).isEqualTo(2);
        assertThat(progress.uncommittedEvents()).isEqualTo(2);
    }

    @Test
    void consumedEvents_countWhatIsCommitted_withoutMissingEvents() {
        progress.recordMissing(2, 5);
        progress.recordHandled(0, 8);
        assertThat(progress.consumedEvents()).isEqualTo(100);

        progress.recordCommitted(6);
        progress.recordCommitted(4); // read late

        assertThat(progress.consumedEvents()).isEqualTo(103);
    }
}
