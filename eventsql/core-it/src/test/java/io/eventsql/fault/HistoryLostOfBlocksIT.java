package io.eventsql.fault;

import io.eventsql.fixture.TestStreams;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@link HistoryLostIT} with streams that store blocks. */
@ExtendWith(TestStreams.OverBlocks.class)
class HistoryLostOfBlocksIT extends HistoryLostIT {}
