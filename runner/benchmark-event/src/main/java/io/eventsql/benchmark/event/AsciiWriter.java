package io.eventsql.benchmark.event;

/** Writes ASCII into an array of known size without allocations. Not thread-safe. */
final class AsciiWriter {
    private static final byte[] HEX = {'0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};

    private final byte[] bytes;
    private int position;

    AsciiWriter(byte[] bytes) {
        this.bytes = bytes;
    }

    /** Continues at another position. */
    void moveTo(int other) {
        position = other;
    }

    void put(char c) {
        put((byte) c);
    }

    void put(byte b) {
        bytes[position++] = b;
    }

    void put(byte[] text) {
        System.arraycopy(text, 0, bytes, position, text.length);
        position += text.length;
    }

    /** Writes the number with leading zeros, dropping higher digits beyond the width. */
    void putDigits(long number, int width) {
        long rest = number;
        for (int i = position + width - 1; i >= position; i--) {
            bytes[i] = (byte) ('0' + rest % 10);
            rest /= 10;
        }
        position += width;
    }

    /** Writes the lowest {@code width} hexadecimal digits. */
    void putHex(long bits, int width) {
        for (int shift = 4 * (width - 1); shift >= 0; shift -= 4) {
            bytes[position++] = HEX[(int) (bits >>> shift) & 0xf];
        }
    }

    /** Returns the array, which must be written to its end. */
    byte[] bytes() {
        if (position != bytes.length) {
            throw new IllegalStateException("wrote " + position + " of " + bytes.length + " bytes");
        }
        return bytes;
    }
}
