package io.eventsql.runner.database;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Finds the databases in the environment: either {@code DB_URLS} (JDBC URLs separated by commas) with {@code DB_USER} and
 * {@code DB_PASSWORD}, or {@code DB0_HOST}, {@code DB1_HOST} and so on, each with {@code _PORT}, {@code _NAME},
 * {@code _USER} and {@code _PASSWORD}. Passwords come only from here: a command line can be read by everyone on the
 * machine.
 */
public final class DatabaseEnvironment {
    private static final String DEFAULT_NAME = "eventsql";
    private static final int DEFAULT_PORT = 5432;
    private static final int MAX_PORT = 65_535;
    private static final int MAX_DATABASES = 1_000;

    private final Map<String, String> environment;

    public DatabaseEnvironment(Map<String, String> environment) {
        this.environment = Map.copyOf(environment);
    }

    /**
     * One address for each shard.
     *
     * @throws IllegalArgumentException if there is none or a variable is wrong; names the variable
     */
    public List<DatabaseAddress> addresses() {
        String urls = value("DB_URLS", "");
        boolean numbered = !value("DB0_HOST", "").isEmpty();
        if (!urls.isEmpty() && numbered) {
            throw new IllegalArgumentException("DB_URLS and DB0_HOST are both set; set only one of them");
        }
        if (!urls.isEmpty()) {
            return ofUrls(urls);
        }
        if (!numbered) {
            throw new IllegalArgumentException(
                    "No database is given; set DB0_HOST (and DB1_HOST, ...) or DB_URLS, see --help");
        }
        return ofHosts();
    }

    private List<DatabaseAddress> ofUrls(String urls) {
        List<DatabaseAddress> addresses = new ArrayList<>();
        // A URL may itself hold commas, between the hosts of one database.
        for (String url : urls.split(",\\s*(?=jdbc:)", -1)) {
            if (!url.startsWith("jdbc:postgresql:")) {
                throw new IllegalArgumentException(
                        "DB_URLS must hold URLs that start with jdbc:postgresql:, but holds '" + url + "'");
            }
            addresses.add(new DatabaseAddress(url.strip(), value("DB_USER", DEFAULT_NAME), value("DB_PASSWORD", "")));
        }
        return addresses;
    }

    private List<DatabaseAddress> ofHosts() {
        List<DatabaseAddress> addresses = new ArrayList<>();
        for (int number = 0; number < MAX_DATABASES; number++) {
            String prefix = "DB" + number + "_";
            String host = value(prefix + "HOST", "");
            if (host.isEmpty()) {
                requireNoneAfter(number);
                return addresses;
            }
            String url = "jdbc:postgresql://" + host + ":" + port(prefix + "PORT") + "/"
                    + value(prefix + "NAME", DEFAULT_NAME);
            addresses.add(
                    new DatabaseAddress(url, value(prefix + "USER", DEFAULT_NAME), value(prefix + "PASSWORD", "")));
        }
        return addresses;
    }

    /** A gap is a mistake: the databases after it would be left out in silence. */
    private void requireNoneAfter(int missing) {
        for (int number = missing + 1; number < MAX_DATABASES; number++) {
            String variable = "DB" + number + "_HOST";
            if (!value(variable, "").isEmpty()) {
                throw new IllegalArgumentException(
                        variable + " is set, but DB" + missing + "_HOST is not; number the databases from 0");
            }
        }
    }

    private int port(String variable) {
        String text = value(variable, Integer.toString(DEFAULT_PORT));
        try {
            int port = Integer.parseInt(text);
            if (port >= 1 && port <= MAX_PORT) {
                return port;
            }
        } catch (NumberFormatException e) {
            // Said below.
        }
        throw new IllegalArgumentException(
                variable + " must be a number between 1 and " + MAX_PORT + ", but is '" + text + "'");
    }

    private String value(String variable, String ifUnset) {
        String value = environment.getOrDefault(variable, "").strip();
        return value.isEmpty() ? ifUnset : value;
    }
}
