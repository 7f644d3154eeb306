/** Results: of a workload's run, and of the main job's runners and their summary; their files and their text. */
@NullMarked
package io.eventsql.runner.result;

import org.jspecify.annotations.NullMarked;
