package io.eventsql.runner.consumption;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;

/** The consumer's apps, each of them a member. Thread-safe. */
public final class Apps implements AutoCloseable {
    private final List<AppClient> apps;

    /** @param uris one for each, such as {@code http://localhost:8080}; at least one */
    public Apps(List<URI> uris) {
        apps = uris.stream().map(AppClient::new).toList();
    }

    public int count() {
        return apps.size();
    }

    /** The one at which runners wait for each other. */
    public AppClient first() {
        return apps.getFirst();
    }

    /**
     * When the last measured event of a runner was handled, epoch microseconds; empty where none was seen.
     *
     * @throws IOException if an app does not answer, or not as expected
     */
    public OptionalLong lastHandledAtMicros(String run, int runner) throws IOException {
        OptionalLong last = OptionalLong.empty();
        for (AppClient app : apps) {
            Optional<RunReport.PhaseReport> seen =
                    app.run(run, false).map(answer -> answer.of(runner).measured());
            if (seen.isPresent() && seen.get().received() > 0) {
                last = OptionalLong.of(Math.max(last.orElse(0), seen.get().lastHandledAtMicros()));
            }
        }
        return last;
    }

    /**
     * What all have seen of a run. An app that does not answer has seen nothing.
     *
     * @param problems takes why an app does not answer, or not as expected
     */
    public MergedRunReport run(String run, Consumer<String> problems) {
        List<RunReport> seen = new ArrayList<>();
        for (AppClient app : apps) {
            try {
                app.run(run, true).ifPresent(seen::add);
            } catch (IOException e) {
                problems.accept(String.valueOf(e.getMessage()));
            }
        }
        try {
            return apps.size() == 1 && !seen.isEmpty()
                    ? MergedRunReport.ofSingleMember(seen.getFirst())
                    : MergedRunReport.merge(run, apps.size(), seen);
        } catch (IllegalArgumentException e) {
            problems.accept("What the apps have seen cannot be united: " + e.getMessage());
            return MergedRunReport.empty(run, apps.size());
        }
    }

    @Override
    public void close() {
        apps.forEach(AppClient::close);
    }
}
