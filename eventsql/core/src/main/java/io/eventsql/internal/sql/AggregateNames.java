package io.eventsql.internal.sql;

import io.eventsql.ContinuousAggregateSpec;

/**
 * The names of an aggregate's view and tables in the application's schema, quoted for SQL.
 *
 * @param view the results of this shard
 * @param partials the partial aggregates of each partition
 * @param coverage which events of each partition they contain
 * @param state the one row with the declaration and the generations
 */
record AggregateNames(String view, String partials, String coverage, String state) {

    static AggregateNames of(ContinuousAggregateSpec spec) {
        String schema = quoted(spec.schema()) + ".";
        return new AggregateNames(
                schema + quoted(spec.table()),
                schema + quoted(spec.table() + "__partials"),
                schema + quoted(spec.table() + "__coverage"),
                schema + quoted(spec.table() + "__state"));
    }

    /** Returns a statement with the names in place of {@code {view}}, {@code {partials}}, {@code {coverage}}, {@code {state}}. */
    String sql(String statement) {
        return statement
                .replace("{view}", view)
                .replace("{partials}", partials)
                .replace("{coverage}", coverage)
                .replace("{state}", state);
    }

    static String quoted(String identifier) {
        return "\"" + identifier.replace("\"", "\"\"") + "\"";
    }
}
