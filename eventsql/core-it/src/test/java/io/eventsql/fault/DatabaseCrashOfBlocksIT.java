package io.eventsql.fault;

import io.eventsql.fixture.TestStreams;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@link DatabaseCrashIT} with streams that store blocks. */
@ExtendWith(TestStreams.OverBlocks.class)
class DatabaseCrashOfBlocksIT extends DatabaseCrashIT {}
