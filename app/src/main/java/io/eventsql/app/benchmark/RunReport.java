package io.eventsql.app.benchmark;

import java.util.List;

/**
 * The counts of one run.
 *
 * @param run the run's id
 * @param consumer the name of the counting consumer
 * @param runners the reports of the runners whose events were received, in the order of their numbers
 */
record RunReport(String run, String consumer, List<RunnerReport> runners) {}
