package io.eventsql.runner.consumption;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;

/** The consumer apps, each a member of the consumer. Thread-safe. */
public final class Apps implements AutoCloseable {
    private final List<AppClient> apps;

    /** @param uris the base URLs, such as {@code http://localhost:8080}; at least one */
    public Apps(List<URI> uris) {
        apps = uris.stream().map(AppClient::new).toList();
    }

    public int count() {
        return apps.size();
    }

    /** Returns the app that coordinates the start of the runners. */
    public AppClient first() {
        return apps.getFirst();
    }

    /**
     * Returns the time for which the compilers of all apps have been active, in milliseconds.
     *
     * @throws IOException if an app does not respond, or does not know it
     */
    public long compilationMs() throws IOException {
        long sum = 0;
        for (AppClient app : apps) {
            Long ms = app.jvm().compilationMs();
            if (ms == null) {
                throw new IOException("The app at " + app.uri() + " does not report its compilation time");
            }
            sum += ms;
        }
        return sum;
    }

    /**
     * Returns when the last measured event of a runner was handled, in epoch microseconds; empty if none was received.
     *
     * @throws IOException if an app does not respond or responds unexpectedly
     */
    public OptionalLong lastHandledAtMicros(String run, int runner) throws IOException {
        OptionalLong last = OptionalLong.empty();
        for (AppClient app : apps) {
            Optional<RunReport.PhaseReport> seen =
                    app.report(run, false).map(answer -> answer.of(runner).measured());
            if (seen.isPresent() && seen.get().received() > 0) {
                last = OptionalLong.of(Math.max(last.orElse(0), seen.get().lastHandledAtMicros()));
            }
        }
        return last;
    }

    /**
     * Returns the merged report of a run. An app that does not respond contributes no events.
     *
     * @param problems receives the failures of apps
     */
    public MergedRunReport report(String run, Consumer<String> problems) {
        List<RunReport> seen = new ArrayList<>();
        for (AppClient app : apps) {
            try {
                app.report(run, true).ifPresent(seen::add);
            } catch (IOException e) {
                problems.accept(String.valueOf(e.getMessage()));
            }
        }
        try {
            return apps.size() == 1 && !seen.isEmpty()
                    ? MergedRunReport.ofSingleMember(seen.getFirst())
                    : MergedRunReport.merge(run, apps.size(), seen);
        } catch (IllegalArgumentException e) {
            problems.accept("Cannot merge the reports of the apps: " + e.getMessage());
            return MergedRunReport.empty(run, apps.size());
        }
    }

    @Override
    public void close() {
        apps.forEach(AppClient::close);
    }
}
