package io.eventsql.benchmark.event;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.time.LocalDate;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Stream;

/**
 * The value of the {@code account_created} event: {@code
 * {"benchmark":"…","id":"<uuid>","email":"…","name":"…","createdAt":"<ISO instant>"}}. Account and person are random.
 * {@code createdAt} is the event's intended time.
 */
final class AccountCreatedValue {
    private static final byte[][] FIRST_NAMES = words(
            "Ada Alan Anita Barbara Claude Donald Edsger Frances Grace Hedy Ivan James Jean Karen Katherine Leslie Linus"
                    + " Margaret Niklaus Radia Robin Shafi Sophie Tony");
    private static final byte[][] LAST_NAMES = words(
            "Allen Backus Borg Conway Dijkstra Easley Floyd Goldwasser Hamilton Hoare Hopper Johnson Keller Knuth Lamarr"
                    + " Lamport Liskov Lovelace Milner Perlman Shannon Sutherland Turing Wirth");

    private static final byte[] ID = ",\"id\":\"".getBytes(US_ASCII);
    private static final byte[] EMAIL = "\",\"email\":\"".getBytes(US_ASCII);
    private static final byte[] EMAIL_DOMAIN = "@customers.example.com".getBytes(US_ASCII);
    private static final byte[] NAME = "\",\"name\":\"".getBytes(US_ASCII);
    private static final byte[] CREATED_AT = "\",\"createdAt\":\"".getBytes(US_ASCII);
    private static final byte[] CLOSING = "\"}".getBytes(US_ASCII);

    private static final int UUID_LENGTH = 36;
    private static final int EMAIL_DIGITS = 10;
    private static final int INSTANT_LENGTH = "2026-01-31T23:59:59.123456Z".length();

    /**
     * The length without the names, which occur twice: in the address as "first.last.", in the name as "First Last".
     */
    private static final int LENGTH_WITHOUT_NAMES = Marker.LENGTH
            + ID.length
            + UUID_LENGTH
            + EMAIL.length
            + "..".length()
            + EMAIL_DIGITS
            + EMAIL_DOMAIN.length
            + NAME.length
            + " ".length()
            + CREATED_AT.length
            + INSTANT_LENGTH
            + CLOSING.length;

    private static final long VERSION_4 = 0x4000L;
    private static final long VARIANT_RFC_9562 = 0x8000L;
    private static final long SECONDS_PER_DAY = 86_400;

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

    private static final int ID_AT = Marker.LENGTH + ID.length;
    private static final Person[] PERSONS = persons();

    /** The second of the latest event, because most events share it. */
    private static volatile Second latest = new Second(-1, new byte[0]);

    static byte[] of(BenchmarkEvent event) {
        ThreadLocalRandom random = ThreadLocalRandom.current();
        Person person = PERSONS[random.nextInt(PERSONS.length)];
        AsciiWriter out = new AsciiWriter(person.value.clone());
        Marker.write(event, out);
        out.moveTo(ID_AT);
        putRandomUuid(random, out);
        out.moveTo(person.digitsAt);
        out.putDigits(random.nextLong() >>> 1, EMAIL_DIGITS);
        out.moveTo(person.value.length - CLOSING.length - INSTANT_LENGTH);
        putInstant(event.intendedAtMicros(), out);
        out.put(CLOSING);
        return out.bytes();
    }

    private static Person[] persons() {
        List<Person> persons = new ArrayList<>();
        for (byte[] firstName : FIRST_NAMES) {
            for (byte[] lastName : LAST_NAMES) {
                persons.add(person(firstName, lastName));
            }
        }
        return persons.toArray(Person[]::new);
    }

    private static Person person(byte[] firstName, byte[] lastName) {
        int length = LENGTH_WITHOUT_NAMES + 2 * (firstName.length + lastName.length);
        AsciiWriter out = new AsciiWriter(new byte[length]);
        out.moveTo(Marker.LENGTH);
        out.put(ID);
        out.moveTo(ID_AT + UUID_LENGTH);
        out.put(EMAIL);
        out.putLowerCase(firstName);
        out.put('.');
        out.putLowerCase(lastName);
        out.put('.');
        int digitsAt = ID_AT + UUID_LENGTH + EMAIL.length + firstName.length + lastName.length + "..".length();
        out.moveTo(digitsAt + EMAIL_DIGITS);
        out.put(EMAIL_DOMAIN);
        out.put(NAME);
        out.put(firstName);
        out.put(' ');
        out.put(lastName);
        out.put(CREATED_AT);
        out.moveTo(length);
        return new Person(out.bytes(), digitsAt);
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
            second = new Second(epochSeconds, text(epochSeconds));
            latest = second;
        }
        out.put(second.text);
        out.putDigits(epochMicros % 1_000_000, 6);
        out.put('Z');
    }

    private static byte[] text(long epochSeconds) {
        AsciiWriter out = new AsciiWriter(new byte["2026-01-31T23:59:59.".length()]);
        LocalDate date = LocalDate.ofEpochDay(epochSeconds / SECONDS_PER_DAY);
        long secondOfDay = epochSeconds % SECONDS_PER_DAY;
        out.putDigits(date.getYear(), 4);
        out.put('-');
        out.putDigits(date.getMonthValue(), 2);
        out.put('-');
        out.putDigits(date.getDayOfMonth(), 2);
        out.put('T');
        out.putDigits(secondOfDay / 3_600, 2);
        out.put(':');
        out.putDigits(secondOfDay / 60 % 60, 2);
        out.put(':');
        out.putDigits(secondOfDay % 60, 2);
        out.put('.');
        return out.bytes();
    }

    private static byte[][] words(String words) {
        return Stream.of(words.split(" ", -1))
                .map(word -> word.getBytes(US_ASCII))
                .toArray(byte[][]::new);
    }
}
