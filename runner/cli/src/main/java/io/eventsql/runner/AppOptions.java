package io.eventsql.runner;

import io.eventsql.runner.consumption.Apps;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** Where the consumer's apps are. */
final class AppOptions {
    @Option(
            names = "--app-url",
            paramLabel = "URL",
            split = ",",
            defaultValue = "http://localhost:8080",
            description = {
                "the consumer app; once for each, or with commas, where several are members of the consumer",
                "(in the environment APP_URL or APP_URLS; default: ${DEFAULT-VALUE})"
            })
    private List<URI> appUrls = new ArrayList<>();

    Apps open() {
        return new Apps(appUrls);
    }
}
