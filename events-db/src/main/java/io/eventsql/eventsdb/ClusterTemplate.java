package io.eventsql.eventsdb;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Stream;

/**
 * An empty cluster in this user's cache, of which temporary servers begin with a copy. They share its superuser's password,
 * which only this user can read. Immutable.
 */
final class ClusterTemplate {
    /** To be changed with the options of {@link Initdb}. */
    private static final int VERSION = 1;

    private static final String DATA = "data";
    private static final String PASSWORD = "password";

    private final Path folder;

    private ClusterTemplate(Path folder) {
        this.folder = folder;
    }

    /** Returns the template of these programs, which is created if there is none. */
    static ClusterTemplate of(PostgresBinaries binaries) throws IOException {
        return new ClusterTemplate(PostgresBinaries.cached("cluster-" + VERSION + "-" + binaries.id(), unfinished -> {
            String password = Passwords.random();
            Path file = unfinished.resolve(PASSWORD);
            Files.createFile(file, PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
            Files.writeString(file, password);
            Initdb.run(binaries, unfinished.resolve(DATA), password, false);
        }));
    }

    String superuserPassword() throws IOException {
        return Files.readString(folder.resolve(PASSWORD));
    }

    /** Copies the data, with the permissions that PostgreSQL requires, to a folder that does not exist. */
    void copyTo(Path data) throws IOException {
        Path source = folder.resolve(DATA);
        List<Path> paths;
        try (Stream<Path> walk = Files.walk(source)) { // folders before what is in them
            paths = walk.toList();
        }
        for (Path path : paths) {
            Files.copy(path, data.resolve(source.relativize(path)), StandardCopyOption.COPY_ATTRIBUTES);
        }
    }
}
