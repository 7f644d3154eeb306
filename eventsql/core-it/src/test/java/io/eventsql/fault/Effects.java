package io.eventsql.fault;

import static org.assertj.core.api.Assertions.assertThat;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

/**
 * The rows that the transactional handlers of one consumer have committed. Whatever happened: one row for each stored
 * event, neither none nor two; and in the order in which they were written (each handler counts its key's events in a row
 * of that key) the events of a key are as they are stored.
 */
record Effects(List<Effect> rows) {
    /** One handled event; the {@code keyOrder}th of its key. */
    record Effect(String process, int partition, long offset, String key, String value, int keyOrder) {}

    static Effects read(DataSource dataSource, String consumer) throws SQLException {
        List<Effect> rows = new ArrayList<>();
        try (Connection connection = dataSource.getConnection();
                PreparedStatement statement = connection.prepareStatement(
                        "SELECT process, partition, event_offset, key,"
                                + " value, key_order FROM public.effect WHERE consumer = ? ORDER BY key, key_order, event_offset")) {
            statement.setString(1, consumer);
            try (ResultSet row = statement.executeQuery()) {
                while (row.next()) {
                    rows.add(new Effect(
                            row.getString(1),
                            row.getInt(2),
                            row.getLong(3),
                            row.getString(4),
                            row.getString(5),
                            row.getInt(6)));
                }
            }
        }
        return new Effects(rows);
    }

    /** Compares it with what is stored. */
    void verify(List<Ledger.Stored> stored) {
        Map<String, Effect> byValue = new HashMap<>();
        Effect last = null;
        for (Effect effect : rows) {
            assertThat(byValue.put(effect.value(), effect))
                    .as("the same event's other effect beside %s", effect)
                    .isNull();
            boolean sameKey = last != null && last.key().equals(effect.key());
            assertThat(effect.keyOrder()).as("%s after %s", effect, last).isEqualTo(sameKey ? last.keyOrder() + 1 : 1);
            assertThat(sameKey ? last.offset() : -1)
                    .as("%s before %s", last, effect)
                    .isLessThan(effect.offset());
            last = effect;
        }
        for (Ledger.Stored event : stored) {
            Effect effect = byValue.remove(event.value());
            assertThat(effect).as("the effect of %s", event).isNotNull();
            assertThat(effect.partition()).isEqualTo(event.partition());
            assertThat(effect.offset()).isEqualTo(event.offset());
        }
        assertThat(byValue).as("effects of what is not stored").isEmpty();
    }
}
