package io.eventsql.fault;

import com.zaxxer.hikari.HikariDataSource;
import io.eventsql.Event;
import io.eventsql.EventPosition;
import io.eventsql.EventSql;
import io.eventsql.Settings;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.Random;

/**
 * The main class of a publishing process. Prints {@code READY}, publishes until its standard input ends, waits for the
 * outcome of every call and prints {@code DONE}; it may be killed at any moment. Each acknowledgement goes to a file
 * before the next call of that caller: a line {@code <value> <shard> <partition> <offset>}, in one write.
 */
final class PublisherProcess {
    /** Leaves the processors to all the others of the test. */
    private static final int PAUSE_MAX_MS = 100;

    private PublisherProcess() {}

    /** Arguments: JDBC URL, user, password, stream, name of the process, file of acknowledgements, seed. */
    public static void main(String[] args) throws Exception {
        String stream = args[3];
        String name = args[4];
        Random random = new Random(Long.parseLong(args[6]));
        try (HikariDataSource pool =
                        Pools.pool(args[0], args[1], args[2], config -> config.setConnectionTimeout(30_000));
                EventSql eventSql =
                        EventSql.builder(pool).settings(settings().build()).build();
                FileChannel file =
                        FileChannel.open(Path.of(args[5]), StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            Load load = new Load(eventSql.publisher(), stream, new LoggingLedger(name + "-", file));
            load.startAll(2, name, random, PAUSE_MAX_MS);
            System.out.println("READY");
            while (System.in.read() >= 0) {
                continue;
            }
            load.stop();
            eventSql.close(Duration.ofSeconds(10));
            System.out.println("DONE");
        }
    }

    /** The settings of all publishers: small batches, so that segments change often. */
    static Settings.Builder settings() {
        return Settings.builder().maxBatchEvents(200).publishTimeout(Duration.ofSeconds(60));
    }

    private static final class LoggingLedger extends Ledger {
        private final FileChannel file;

        LoggingLedger(String withoutKey, FileChannel file) {
            super(withoutKey);
            this.file = file;
        }

        @Override
        void stored(Event event, EventPosition position) {
            super.stored(event, position);
            String line =
                    event.text() + " " + position.shard() + " " + position.partition() + " " + position.offset() + "\n";
            try {
                synchronized (file) {
                    file.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.US_ASCII)));
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }
}
