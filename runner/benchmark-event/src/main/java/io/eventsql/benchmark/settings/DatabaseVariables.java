package io.eventsql.benchmark.settings;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.URLEncoder;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads the databases of all shards from environment variables. Either each database has its own variables, numbered
 * from 0 without gaps: {@code DB0_HOST}, {@code DB0_PORT} (5432), {@code DB0_NAME} (eventsql), {@code DB0_USER}
 * (eventsql) and {@code DB0_PASSWORD}, {@code DB1_HOST} and so on. Or {@code DB_URLS} contains all JDBC URLs, separated
 * by commas, with {@code DB_USER} (eventsql) and {@code DB_PASSWORD} for all of them. Passwords are read only from the
 * environment, because command lines are visible to all users of the machine.
 */
public final class DatabaseVariables {
    /** The maximum number of databases. */
    static final int DATABASES_MAX = 64;

    private static final int DEFAULT_PORT = 5432;
    private static final String DEFAULT_NAME = "eventsql";
    private static final String DEFAULT_USER = "eventsql";

    private static final String HOST = "HOST";
    private static final List<String> PARTS = List.of(HOST, "PORT", "NAME", "USER", "PASSWORD");

    /** A name, an IPv4 address or a bracketed IPv6 address, so that it cannot terminate the host part of the URL. */
    private static final Pattern HOST_FORM = Pattern.compile("[A-Za-z0-9._-]+|\\[[0-9A-Fa-f:.]+]");

    /** Splits between URLs only. A comma inside a URL separates the hosts of one cluster. */
    private static final Pattern BETWEEN_URLS = Pattern.compile("\\s*,\\s*(?=jdbc:)");

    private DatabaseVariables() {}

    /**
     * Reads the databases in the order of their numbers or of {@code DB_URLS}; at least one.
     *
     * @throws InvalidSettingException if a variable is missing or invalid
     */
    public static List<DatabaseAddress> read(Variables variables) {
        String urls = variables.find("DB_URLS");
        int numbered = countNumbered(variables);
        rejectGaps(variables, numbered);
        if (urls == null && numbered == 0) {
            throw new InvalidSettingException(
                    "DB0_HOST", "is missing: set DB0_HOST and DB0_PASSWORD, or DB_URLS and DB_PASSWORD");
        }
        if (urls != null && numbered > 0) {
            throw new InvalidSettingException("DB_URLS", "and DB0_HOST are both set; set only one of them");
        }
        return urls == null ? readNumbered(variables, numbered) : readUrls(variables, urls);
    }

    /**
     * Reads the only database.
     *
     * @throws IllegalArgumentException if a variable is missing or invalid, or if there are several databases
     */
    public static DatabaseAddress readOne(Variables variables) {
        List<DatabaseAddress> addresses = read(variables);
        if (addresses.size() > 1) {
            throw new IllegalArgumentException(
                    "Exactly one database is required, but " + addresses.size() + " are configured");
        }
        return addresses.getFirst();
    }

    private static List<DatabaseAddress> readNumbered(Variables variables, int count) {
        List<DatabaseAddress> databases = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            String host = variables.text(variable(number, HOST), "");
            if (!HOST_FORM.matcher(host).matches()) {
                throw new InvalidSettingException(
                        variable(number, HOST), "must be a host's name or address, but is '" + host + "'");
            }
            int port = variables.number(variable(number, "PORT"), DEFAULT_PORT, 1, 65_535);
            String name = variables.text(variable(number, "NAME"), DEFAULT_NAME);
            databases.add(new DatabaseAddress(
                    "jdbc:postgresql://" + host + ":" + port + "/" + URLEncoder.encode(name, UTF_8),
                    variables.text(variable(number, "USER"), DEFAULT_USER),
                    variables.secret(variable(number, "PASSWORD"))));
        }
        return databases;
    }

    private static List<DatabaseAddress> readUrls(Variables variables, String urls) {
        String user = variables.text("DB_USER", DEFAULT_USER);
        String password = variables.secret("DB_PASSWORD");
        List<DatabaseAddress> databases = new ArrayList<>();
        for (String url : BETWEEN_URLS.split(urls, -1)) {
            if (!isAccepted(url)) {
                throw new InvalidSettingException(
                        "DB_URLS",
                        "must be URLs like jdbc:postgresql://host:5432/eventsql, separated by commas; URL "
                                + (databases.size() + 1) + " is invalid");
            }
            databases.add(new DatabaseAddress(url, user, password));
        }
        return databases;
    }

    /** Returns whether PostgreSQL's driver, the only one on the class path, accepts the URL. */
    private static boolean isAccepted(String url) {
        try {
            return DriverManager.getDriver(url) != null;
        } catch (SQLException e) {
            return false;
        }
    }

    private static int countNumbered(Variables variables) {
        int count = 0;
        while (count < DATABASES_MAX && variables.isSet(variable(count, HOST))) {
            count++;
        }
        return count;
    }

    /** Rejects gaps in the numbering, because an accidentally ignored database would invalidate the benchmark. */
    private static void rejectGaps(Variables variables, int count) {
        for (int number = count; number < DATABASES_MAX; number++) {
            String stray = findAny(variables, number);
            if (stray != null) {
                throw new InvalidSettingException(
                        stray,
                        "is set, but " + variable(count, HOST)
                                + " is missing; number the databases from 0 without gaps");
            }
        }
    }

    private static @Nullable String findAny(Variables variables, int number) {
        for (String part : PARTS) {
            if (variables.isSet(variable(number, part))) {
                return variable(number, part);
            }
        }
        return null;
    }

    private static String variable(int number, String part) {
        return "DB" + number + "_" + part;
    }
}
