package io.eventsql.benchmark.event;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.time.Instant;
import java.util.Locale;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Stream;

/**
 * The value of the {@code account_created} event: {@code
 * {"benchmark":"…","id":"<uuid>","email":"…","name":"…","createdAt":"<ISO instant>"}}. Account and person are random.
 * {@code createdAt} is the event's intended time.
 */
final class AccountCreatedValue {
    private static final String FIRST_NAMES =
            "Ada Alan Anita Barbara Claude Donald Edsger Frances Grace Hedy Ivan James Jean Karen Katherine Leslie Linus"
                    + " Margaret Niklaus Radia Robin Shafi Sophie Tony";
    private static final String LAST_NAMES =
            "Allen Backus Borg Conway Dijkstra Easley Floyd Goldwasser Hamilton Hoare Hopper Johnson Keller Knuth Lamarr"
                    + " Lamport Liskov Lovelace Milner Perlman Shannon Sutherland Turing Wirth";

    private static final String BEFORE_ID = ",\"id\":\"";
    private static final String CLOSING = "\"}";
    private static final int ID_AT = Marker.LENGTH + BEFORE_ID.length();
    private static final int UUID_LENGTH = 36;
    private static final int EMAIL_DIGITS = 10;
    private static final int INSTANT_LENGTH = "2026-01-31T23:59:59.123456Z".length();

    private static final long VERSION_4 = 0x4000L;
    private static final long VARIANT_RFC_9562 = 0x8000L;

    private AccountCreatedValue() {}

    /**
     * The value of a person without what differs from event to event.
     *
     * @param value the value, with gaps
     * @param digitsAt the position of the digits in the address
     */
    private record Person(byte[] value, int digitsAt) {}

    /** A second and its text, up to the fraction. */
    private record Second(long epochSeconds, byte[] text) {}

    private static final Person[] PERSONS = Stream.of(FIRST_NAMES.split(" ", -1))
            .flatMap(firstName -> Stream.of(LAST_NAMES.split(" ", -1)).map(lastName -> person(firstName, lastName)))
            .toArray(Person[]::new);

    /** The second of the latest event, because most events share it. */
    private static volatile Second latest = new Second(-1, new byte[0]);

    static byte[] of(BenchmarkEvent event) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        Person person = PERSONS[random.nextInt(PERSONS.length)];
        byte[] value = person.value.clone();
        AsciiWriter out = new AsciiWriter(value);
        Marker.write(event, out);
        out.moveTo(ID_AT);
        putRandomUuid(random, out);
        out.moveTo(person.digitsAt);
        out.putDigits(random.nextLong() >>> 1, EMAIL_DIGITS);
        out.moveTo(value.length - CLOSING.length() - INSTANT_LENGTH);
        putInstant(event.intendedAtMicros(), out);
        return value;
    }

    private static Person person(String firstName, String lastName) {
        String beforeDigits = " ".repeat(Marker.LENGTH) + BEFORE_ID + " ".repeat(UUID_LENGTH) + "\",\"email\":\""
                + (firstName + "." + lastName + ".").toLowerCase(Locale.ROOT);
        String value = beforeDigits + " ".repeat(EMAIL_DIGITS) + "@customers.example.com\",\"name\":\"" + firstName
                + " " + lastName + "\",\"createdAt\":\"" + " ".repeat(INSTANT_LENGTH) + CLOSING;
        return new Person(value.getBytes(US_ASCII), beforeDigits.length());
    }

    private static void putRandomUuid(ThreadLocalRandom random, AsciiWriter out) {
        long high = random.nextLong();
        long low = random.nextLong();
        out.putHex(high >>> 32, 8);
        out.put('-');
        out.putHex(high >>> 16, 4);
        out.put('-');
        out.putHex((high & 0x0fff) | VERSION_4, 4);
        out.put('-');
        out.putHex(((low >>> 48) & 0x3fff) | VARIANT_RFC_9562, 4);
        out.put('-');
        out.putHex(low, 12);
    }

    /**
     * Writes an instant with a fixed number of digits. {@code Instant.toString()} drops trailing zeros and is slower.
     */
    private static void putInstant(long epochMicros, AsciiWriter out) {
        long epochSeconds = epochMicros / 1_000_000;
        Second second = latest;
        if (second.epochSeconds != epochSeconds) {
            String text = Instant.ofEpochSecond(epochSeconds).toString().replace('Z', '.');
            second = new Second(epochSeconds, text.getBytes(US_ASCII));
            latest = second;
        }
        out.put(second.text);
        out.putDigits(epochMicros % 1_000_000, 6);
        out.put('Z');
    }
}
