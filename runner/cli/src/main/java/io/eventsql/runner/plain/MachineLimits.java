package io.eventsql.runner.plain;

import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The machine's own limits.
 *
 * @param fsyncsPerSecond blocks of 8 KiB written over old ones and flushed, one after the other
 * @param loopbackRoundTripMicros the median time of one byte to another thread and back, over loopback TCP
 * @param copyRowsPerSecond events by binary COPY over one connection; {@code null} without our PostgreSQL
 */
public record MachineLimits(
        double fsyncsPerSecond,
        double loopbackRoundTripMicros,
        @Nullable Double copyRowsPerSecond) {
    private static final int BLOCK_BYTES = 8_192;
    private static final int BLOCKS = 256;
    private static final int WARM_UP = 2_000;
    private static final int ROUND_TRIPS = 10_000;

    /**
     * Measures flushes and round trips.
     *
     * @param folder the folder of a temporary file, on the disk to measure
     * @param seconds how long to flush
     */
    public static MachineLimits measure(Path folder, double seconds, @Nullable Double copyRowsPerSecond)
            throws IOException {
        return new MachineLimits(flush(folder, seconds), exchange(), copyRowsPerSecond);
    }

    private static double flush(Path folder, double seconds) throws IOException {
        Path file = Files.createTempFile(folder, "fsync", ".tmp");
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
            ByteBuffer block = ByteBuffer.allocateDirect(BLOCK_BYTES);
            for (int i = 0; i < BLOCKS; i++) {
                channel.write(block.clear(), (long) i * BLOCK_BYTES);
            }
            channel.force(true);
            long start = System.nanoTime();
            long flushes = 0;
            while (System.nanoTime() - start < seconds * 1e9) {
                channel.write(block.clear(), flushes % BLOCKS * BLOCK_BYTES);
                channel.force(false);
                flushes++;
            }
            return flushes * 1e9 / (System.nanoTime() - start);
        } finally {
            Files.deleteIfExists(file);
        }
    }

    private static double exchange() throws IOException {
        try (ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                Socket client = new Socket(server.getInetAddress(), server.getLocalPort())) {
            Thread.ofPlatform().daemon().start(() -> echo(server));
            client.setTcpNoDelay(true);
            DataInputStream in = new DataInputStream(client.getInputStream());
            OutputStream out = client.getOutputStream();
            long[] nanos = new long[ROUND_TRIPS];
            for (int i = -WARM_UP; i < ROUND_TRIPS; i++) {
                long start = System.nanoTime();
                out.write(1);
                in.readByte();
                nanos[Math.max(0, i)] = System.nanoTime() - start;
            }
            Arrays.sort(nanos);
            return nanos[ROUND_TRIPS / 2] / 1e3;
        }
    }

    private static void echo(ServerSocket server) {
        try (Socket accepted = server.accept();
                InputStream in = accepted.getInputStream()) {
            accepted.setTcpNoDelay(true);
            for (int read = in.read(); read >= 0; read = in.read()) {
                accepted.getOutputStream().write(read);
            }
        } catch (IOException e) {
            // The client sees its connection end.
        }
    }
}
