package io.eventsql.app.benchmark;

import io.eventsql.benchmark.event.BenchmarkEvent;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** Synchronizes the start of the runners of a run. Each runner polls until it receives the start time. */
@RestController
@RequestMapping("/benchmark-runs/{run}/barriers/{name}")
final class BarrierController {
    private static final int RUNNERS_MAX = BenchmarkEvent.RUNNER_MAX + 1;

    private final Barriers barriers;

    BarrierController(Barriers barriers) {
        this.barriers = barriers;
    }

    @PostMapping
    BarrierState arrive(
            @PathVariable String run, @PathVariable String name, @RequestParam int runner, @RequestParam int runners) {
        Requests.requireRun(run);
        Requests.requireBarrierName(name);
        Requests.requireRange("runner", runner, 0, BenchmarkEvent.RUNNER_MAX);
        Requests.requireRange("runners", runners, 1, RUNNERS_MAX);
        try {
            return barriers.arrive(run, name, runner, runners);
        } catch (IllegalStateException e) {
            throw new ResponseStatusException(HttpStatus.CONFLICT, e.getMessage(), e);
        }
    }
}
