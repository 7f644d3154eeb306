package io.eventsql.eventsdb;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.jspecify.annotations.Nullable;
import org.tukaani.xz.XZInputStream;

/**
 * The PostgreSQL programs, unpacked from the class path once per user and version into {@code ~/.cache/eventsql}, or
 * into the temporary folder if the home folder is not writable. Immutable.
 */
final class PostgresBinaries {

    private static final Logger LOGGER = System.getLogger(PostgresBinaries.class.getName());
    private static final String UNFINISHED_PREFIX = "unpacking-";

    private static @Nullable PostgresBinaries unpacked;

    private final Path folder;

    private PostgresBinaries(Path folder) {
        this.folder = folder;
    }

    /** Unpacks the programs if necessary. Safe for concurrent calls by several threads and processes. */
    static synchronized PostgresBinaries unpack() {
        PostgresBinaries known = unpacked;
        if (known == null) {
            String archive = archive();
            try {
                known = new PostgresBinaries(cached("postgres-" + hash(archive), folder -> extract(archive, folder)));
            } catch (IOException e) {
                throw new UncheckedIOException("cannot unpack the PostgreSQL programs", e);
            }
            unpacked = known;
        }
        return known;
    }

    /** Fills a new folder. */
    @FunctionalInterface
    interface Filler {
        void fill(Path folder) throws IOException;
    }

    /**
     * Returns a folder of this user's cache, which is filled if it does not exist. Safe for concurrent calls by several
     * threads and processes: one of them fills, and the folder gets its final name only when it is complete.
     */
    static synchronized Path cached(String name, Filler filler) throws IOException {
        Path cache = cacheFolder();
        Path folder = cache.resolve(name);
        if (!Files.isDirectory(folder)) {
            try (var lockFile = FileChannel.open(
                            cache.resolve("unpack.lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                    var lock = lockFile.lock()) {
                if (lock.isValid() && !Files.isDirectory(folder)) {
                    removeUnfinished(cache);
                    Path unfinished = Files.createTempDirectory(cache, UNFINISHED_PREFIX);
                    filler.fill(unfinished);
                    Files.move(unfinished, folder, StandardCopyOption.ATOMIC_MOVE);
                }
            }
        }
        return folder;
    }

    /** Removes what attempts that failed or were killed have left: each repetition would take as much of the disk again. */
    private static void removeUnfinished(Path cache) {
        try (DirectoryStream<Path> left = Files.newDirectoryStream(cache, UNFINISHED_PREFIX + "*")) {
            for (Path folder : left) {
                Folders.remove(folder);
            }
        } catch (IOException | DirectoryIteratorException e) {
            LOGGER.log(Level.WARNING, "an unfinished folder in " + cache + " stays until it is removed by hand", e);
        }
    }

    /** Returns what distinguishes these programs from those of other versions. */
    String id() {
        return String.valueOf(folder.getFileName());
    }

    /**
     * Returns a builder for a process of one of the programs. PostgreSQL refuses to run as root. For root, the process
     * runs in a user namespace as an unprivileged user, with the same process id and ownership of its files.
     */
    ProcessBuilder process(String program, List<String> arguments) {
        var command = new ArrayList<String>();
        if (isRoot()) {
            command.addAll(List.of("unshare", "--user"));
        }
        command.add(folder.resolve("bin").resolve(program).toString());
        command.addAll(arguments);
        var process = new ProcessBuilder(command);
        // Removes variables of the parent process such as PGDATA and PGPORT, which are not meant for this server.
        process.environment().keySet().removeIf(name -> name.startsWith("PG"));
        process.environment().put("LC_ALL", "C");
        return process;
    }

    private static boolean isRoot() {
        return System.getProperty("user.name").equals("root");
    }

    private static String archive() {
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT).startsWith("mac") ? "darwin" : "linux";
        String architecture = switch (System.getProperty("os.arch")) {
            case "amd64", "x86_64" -> "x86_64";
            case "aarch64", "arm64" -> "arm_64";
            default ->
                throw new IllegalStateException(
                        "no PostgreSQL programs for the architecture " + System.getProperty("os.arch"));
        };
        return "/postgres-" + os + "-" + architecture + ".txz";
    }

    private static InputStream open(String archive) {
        InputStream in = PostgresBinaries.class.getResourceAsStream(archive);
        if (in == null) {
            throw new IllegalStateException(archive + " is missing from the class path");
        }
        return new BufferedInputStream(in);
    }

    private static Path cacheFolder() throws IOException {
        Path home = Path.of(System.getProperty("user.home"));
        Path cache = Files.isDirectory(home) && Files.isWritable(home)
                ? home.resolve(".cache").resolve("eventsql")
                : Path.of(System.getProperty("java.io.tmpdir"), "eventsql-" + System.getProperty("user.name"));
        Files.createDirectories(cache);
        if (!Files.getOwner(cache).getName().equals(System.getProperty("user.name"))) {
            throw new IOException(cache + " belongs to another user; refusing to run programs from there");
        }
        return cache;
    }

    private static String hash(String archive) throws IOException {
        try (var in = new DigestInputStream(open(archive), MessageDigest.getInstance("SHA-256"))) {
            byte[] buffer = new byte[1 << 16];
            while (in.read(buffer) >= 0) {
                // Reading updates the digest.
            }
            return HexFormat.of().formatHex(in.getMessageDigest().digest(), 0, 8);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void extract(String archive, Path target) throws IOException {
        try (var tar = new TarArchiveInputStream(new XZInputStream(open(archive)))) {
            for (TarArchiveEntry entry = tar.getNextEntry(); entry != null; entry = tar.getNextEntry()) {
                Path path = target.resolve(entry.getName()).normalize();
                if (!path.startsWith(target)) {
                    throw new IOException("archive entry outside the target folder: " + entry.getName());
                }
                if (entry.isDirectory()) {
                    Files.createDirectories(path);
                } else {
                    Files.createDirectories(path.resolve("..").normalize());
                    if (entry.isSymbolicLink()) {
                        Files.createSymbolicLink(path, Path.of(entry.getLinkName()));
                    } else {
                        Files.copy(tar, path);
                        boolean executable = (entry.getMode() & 0100) != 0;
                        Files.setPosixFilePermissions(
                                path, PosixFilePermissions.fromString(executable ? "rwxr-xr-x" : "rw-r--r--"));
                    }
                }
            }
        }
    }
}
