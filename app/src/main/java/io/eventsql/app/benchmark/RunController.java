package io.eventsql.app.benchmark;

import io.eventsql.app.AppSettings;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** Serves the counts of runs. */
@RestController
@RequestMapping("/benchmark-runs/{run}")
final class RunController {
    private final BenchmarkRuns runs;
    private final Barriers barriers;
    private final String consumer;

    RunController(BenchmarkRuns runs, Barriers barriers, AppSettings settings) {
        this.runs = runs;
        this.barriers = barriers;
        this.consumer = settings.consumer().name();
    }

    /** @param detail whether to include the detail needed to merge reports of several members */
    @GetMapping
    RunReport report(@PathVariable String run, @RequestParam(defaultValue = "false") boolean detail) {
        Requests.requireRun(run);
        List<RunnerReport> runners = runs.report(run, detail);
        if (runners == null) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND, "No events of run " + run + " received");
        }
        return new RunReport(run, consumer, runners);
    }

    @DeleteMapping
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void forget(@PathVariable String run) {
        Requests.requireRun(run);
        runs.forget(run);
        barriers.forget(run);
    }
}
