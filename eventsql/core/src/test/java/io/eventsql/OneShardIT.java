package io.eventsql;

class OneShardIT extends EventSqlContract {
    OneShardIT() {
        super(1);
    }
}
