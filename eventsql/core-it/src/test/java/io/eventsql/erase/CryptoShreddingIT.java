package io.eventsql.erase;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.eventsql.Event;
import io.eventsql.StoredEvent;
import io.eventsql.fixture.DatabaseFiles;
import java.nio.ByteBuffer;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import javax.crypto.Cipher;
import javax.crypto.KeyGenerator;
import javax.crypto.SecretKey;
import javax.crypto.spec.GCMParameterSpec;
import org.junit.jupiter.api.Test;

/** The example of {@code docs/erasure.md}, which shows the tagged region: one key per person, dropped on request. */
class CryptoShreddingIT extends ErasureFixture {
    /** Encrypts each person's values with a key of their own. */
    static final class PersonalValues {
        private static final int NONCE_BYTES = 12;
        private static final int TAG_BITS = 128;

        private final SecureRandom random = new SecureRandom();
        private final Map<String, SecretKey> keys = new ConcurrentHashMap<>(); // in an application: a key store

        // tag::crypto-shredding[]
        byte[] serialize(String person, String text) throws GeneralSecurityException {
            KeyGenerator generator = KeyGenerator.getInstance("AES");
            SecretKey key = keys.computeIfAbsent(person, p -> generator.generateKey());
            byte[] nonce = new byte[NONCE_BYTES];
            random.nextBytes(nonce);
            Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
            cipher.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(TAG_BITS, nonce));
            byte[] encrypted = cipher.doFinal(text.getBytes(UTF_8));
            return ByteBuffer.allocate(nonce.length + encrypted.length)
                    .put(nonce)
                    .put(encrypted)
                    .array();
        }

        /** Returns nothing if the person's key was dropped. */
        Optional<String> deserialize(String person, byte[] value) throws GeneralSecurityException {
            SecretKey key = keys.get(person);
            if (key == null) {
                return Optional.empty();
            }
            Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
            cipher.init(Cipher.DECRYPT_MODE, key, new GCMParameterSpec(TAG_BITS, value, 0, NONCE_BYTES));
            byte[] text = cipher.doFinal(Arrays.copyOfRange(value, NONCE_BYTES, value.length));
            return Optional.of(new String(text, UTF_8));
        }
        // end::crypto-shredding[]

        void forget(String person) {
            keys.remove(person);
        }
    }

    @Test
    void forget_makesTheValuesUnreadable_andNoPlainTextWasEverStored() throws Exception {
        open(1);
        PersonalValues values = new PersonalValues();
        for (String person : new String[] {"eve", "bob"}) {
            eventSql.publisher().publish(stream, Event.of(person, values.serialize(person, "address-of-" + person)));
        }
        assertThat(DatabaseFiles.containing(database(), "address-of-")).isEmpty();

        values.forget("eve");

        for (StoredEvent event : readAll(stream)) {
            assertThat(values.deserialize(event.key(), event.value()))
                    .isEqualTo(event.key().equals("eve") ? Optional.empty() : Optional.of("address-of-bob"));
        }
    }
}
