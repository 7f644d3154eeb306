package io.eventsql;

class ThreeShardsIT extends EventSqlContract {
    ThreeShardsIT() {
        super(3);
    }
}
