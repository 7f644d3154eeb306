package io.eventsql.fault;

import io.eventsql.fixture.TestStreams;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@link DumpAndRestoreIT} with streams that store blocks. */
@ExtendWith(TestStreams.OverBlocks.class)
class DumpAndRestoreOfBlocksIT extends DumpAndRestoreIT {}
