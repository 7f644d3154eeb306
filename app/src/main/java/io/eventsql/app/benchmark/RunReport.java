package io.eventsql.app.benchmark;

import java.util.List;

/**
 * What arrived of one run.
 *
 * @param run the run's id
 * @param consumer the name of the consumer that counted
 * @param runners the runners of which something arrived, by their numbers
 */
record RunReport(String run, String consumer, List<RunnerReport> runners) {}
