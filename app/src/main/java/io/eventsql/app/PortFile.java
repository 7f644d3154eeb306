package io.eventsql.app;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.web.server.context.WebServerInitializedEvent;
import org.springframework.context.event.EventListener;
import org.springframework.stereotype.Component;

/** Writes the HTTP port to a file, for a parent process that started the app with a free port. */
@Component
final class PortFile {
    private static final Logger log = LoggerFactory.getLogger(PortFile.class);

    private final @Nullable Path file;

    PortFile(AppSettings settings) {
        file = settings.portFile();
    }

    /** Writes the file atomically by a rename, so that a reader never sees a partial number. */
    @EventListener
    void write(WebServerInitializedEvent event) throws IOException {
        if (file == null) {
            return;
        }
        int port = event.getWebServer().getPort();
        Path temporary = file.resolveSibling(file.getFileName() + ".tmp");
        Files.writeString(temporary, port + "\n");
        Files.move(temporary, file, StandardCopyOption.ATOMIC_MOVE);
        log.info("Wrote port {} to {}", port, file);
    }
}
