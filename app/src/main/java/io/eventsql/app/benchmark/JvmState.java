package io.eventsql.app.benchmark;

import java.util.List;

/**
 * The state of a JVM.
 *
 * @param options the options of its command line
 * @param compilationMs the time for which its compilers have been active, in milliseconds
 */
record JvmState(List<String> options, long compilationMs) {}
