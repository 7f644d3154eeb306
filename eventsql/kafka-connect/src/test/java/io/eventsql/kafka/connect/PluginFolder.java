package io.eventsql.kafka.connect;

import io.eventsql.reader.EventReader;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;

/** A folder for {@code plugin.path} with the three jars of the connector, as users make it. */
final class PluginFolder {
    private PluginFolder() {}

    /** Returns the folder for {@code plugin.path}. */
    static Path create(Path parent) throws IOException, ClassNotFoundException {
        Path plugins = parent.resolve("plugins");
        Path jars = Files.createDirectories(plugins.resolve("eventsql"));
        for (Class<?> any :
                List.of(EventSqlSourceConnector.class, EventReader.class, Class.forName("org.postgresql.Driver"))) {
            Path source = locationOf(any);
            Path jar = jars.resolve(any.getSimpleName() + ".jar");
            if (Files.isDirectory(source)) {
                zip(source, jar);
            } else {
                Files.copy(source, jar);
            }
        }
        return plugins;
    }

    private static Path locationOf(Class<?> any) {
        try {
            return Path.of(
                    any.getProtectionDomain().getCodeSource().getLocation().toURI());
        } catch (URISyntaxException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void zip(Path folder, Path jar) throws IOException {
        try (OutputStream file = Files.newOutputStream(jar);
                ZipOutputStream entries = new ZipOutputStream(file);
                Stream<Path> files = Files.walk(folder)) {
            for (Path any : files.filter(Files::isRegularFile).sorted().toList()) {
                entries.putNextEntry(new ZipEntry(folder.relativize(any).toString()));
                Files.copy(any, entries);
                entries.closeEntry();
            }
        }
    }
}
