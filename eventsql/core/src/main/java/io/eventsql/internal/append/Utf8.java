package io.eventsql.internal.append;

/** Texts as PostgreSQL stores them, examined without encoding them: every key and every header passes here. */
final class Utf8 {
    private Utf8() {}

    /** Returns the index of the first NUL character or half surrogate pair; -1 if there is none. */
    static int indexOfInvalid(String text) {
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == 0) {
                return i;
            }
            if (Character.isSurrogate(c)) {
                if (Character.isLowSurrogate(c)
                        || i + 1 == text.length()
                        || !Character.isLowSurrogate(text.charAt(i + 1))) {
                    return i;
                }
                i++;
            }
        }
        return -1;
    }

    /** Returns the number of bytes of a text without half surrogate pairs. */
    static int length(String text) {
        int bytes = text.length();
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c >= 0x80) { // a pair takes four bytes, two for each half
                bytes += c < 0x800 || Character.isSurrogate(c) ? 1 : 2;
            }
        }
        return bytes;
    }
}
