package io.eventsql.app.benchmark;

/**
 * What arrived of one runner.
 *
 * @param runner the runner's number
 */
record RunnerReport(int runner, PhaseReport measured, PhaseReport warmup) {}
