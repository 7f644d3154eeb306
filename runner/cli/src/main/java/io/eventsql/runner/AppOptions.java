package io.eventsql.runner;

import io.eventsql.runner.consumption.Apps;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/** The addresses of the consumer apps. */
final class AppOptions {
    @Option(
            names = "--app-url",
            paramLabel = "URL",
            split = ",",
            defaultValue = "http://localhost:8080",
            description = {
                "base URL of a consumer app; comma-separated or repeated if the consumer has several members",
                "(environment: APP_URL or APP_URLS; default: ${DEFAULT-VALUE})"
            })
    private List<URI> appUrls = new ArrayList<>();

    Apps open() {
        return new Apps(appUrls);
    }
}
