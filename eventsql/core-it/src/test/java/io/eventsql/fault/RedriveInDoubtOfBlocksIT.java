package io.eventsql.fault;

import io.eventsql.fixture.TestStreams;
import org.junit.jupiter.api.extension.ExtendWith;

/** {@link RedriveInDoubtIT} with streams that store blocks. */
@ExtendWith(TestStreams.OverBlocks.class)
class RedriveInDoubtOfBlocksIT extends RedriveInDoubtIT {}
