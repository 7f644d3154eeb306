package io.eventsql;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Locale;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Validates names. */
final class Names {
    private static final Pattern STREAM_NAME = Pattern.compile("[A-Za-z0-9][A-Za-z0-9._-]*");
    private static final Pattern NAME = Pattern.compile("[a-z][a-z0-9]*(_[a-z0-9]+)*");

    private static final Pattern SHARD_NAME = Pattern.compile("[\\p{Alnum}._-]{1,60}");

    private static final String TABLE_PREFIX = "events_";
    /** Leaves room in the 63 bytes of a table's name for the numbers of a partition and a segment. */
    private static final int PLAIN_TABLE_LENGTH_MAX = 36;

    private static final int PART_LENGTH_MAX = 27;
    private static final int HASH_BYTES = 4;

    private Names() {}

    /** Validates the name of a shard, which appears only in log messages, meters and the like. */
    static String requireShardName(String field, @Nullable String name) {
        if (name == null || !SHARD_NAME.matcher(name).matches()) {
            throw new InvalidInputException(
                    field,
                    "must be named with 1 to 60 letters, digits, dots, hyphens and underscores, but a name is "
                            + InvalidInputException.shown(name));
        }
        return name;
    }

    /** Validates the name of a stream. */
    static String requireStreamName(String field, @Nullable String name) {
        if (name == null
                || name.length() > StreamSpec.NAME_LENGTH_MAX
                || !STREAM_NAME.matcher(name).matches()) {
            throw new InvalidInputException(
                    field,
                    "must be letters (A to Z, a to z), digits, dots, underscores and hyphens, start with a letter or a"
                            + " digit and have at most " + StreamSpec.NAME_LENGTH_MAX + " characters, but is "
                            + InvalidInputException.shown(name));
        }
        return name;
    }

    /** Validates a name that needs no quoting in SQL. */
    static String requireName(String field, @Nullable String name, int maxLength) {
        if (name == null || name.length() > maxLength || !NAME.matcher(name).matches()) {
            throw new InvalidInputException(
                    field,
                    "must be lower-case letters, digits and single underscores, start with a letter and have at most "
                            + maxLength + " characters, but is " + InvalidInputException.shown(name));
        }
        return name;
    }

    /** Returns the name of the table of a stream's events, as the SQL function stream_table_name_v1 does. */
    static String tableName(String stream) {
        if (stream.length() <= PLAIN_TABLE_LENGTH_MAX && NAME.matcher(stream).matches()) {
            return TABLE_PREFIX + stream;
        }
        String plain = stream.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "_");
        plain = plain.substring(0, Math.min(plain.length(), PART_LENGTH_MAX)).replaceAll("^_+|_+$", "");
        return TABLE_PREFIX + (plain.isEmpty() ? "" : plain + "_") + hash(stream);
    }

    private static String hash(String stream) {
        try {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(stream.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(hash, 0, HASH_BYTES);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every Java has SHA-256", e);
        }
    }
}
