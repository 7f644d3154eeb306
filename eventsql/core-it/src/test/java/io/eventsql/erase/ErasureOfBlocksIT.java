package io.eventsql.erase;

import io.eventsql.Storage;

/** Erasure in streams that store blocks. */
class ErasureOfBlocksIT extends ErasureContract {
    @Override
    Storage storage() {
        return Storage.BLOCKS;
    }
}
