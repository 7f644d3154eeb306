package io.eventsql.app.benchmark;

/**
 * The counts of one runner.
 *
 * @param runner the runner's number
 */
record RunnerReport(int runner, PhaseReport measured, PhaseReport warmup) {}
