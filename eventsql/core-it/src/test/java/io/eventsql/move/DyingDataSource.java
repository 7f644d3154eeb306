package io.eventsql.move;

import io.eventsql.fixture.DelegatingDataSource;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.sql.DataSource;

/** Lets the calling process die, as far as a move is concerned, after it has committed a number of steps of a move. */
final class DyingDataSource extends DelegatingDataSource {
    private static final Pattern STEP =
            Pattern.compile("eventsql[.](decide_move|join_move|keep_streams|receive_slots|freeze_receiver"
                    + "|begin_closing|close_slots|open_slots|finish_move)_v[0-9]");

    private final Steps steps;

    DyingDataSource(DataSource target, Steps steps) {
        super(target);
        this.steps = steps;
    }

    /** Thrown after the commit of the last step. */
    static final class DiedException extends RuntimeException {
        private static final long serialVersionUID = 1L;

        DiedException(String step) {
            super("died after " + step);
        }
    }

    /** The steps that the process takes before it dies, on all databases. */
    static final class Steps {
        private final AtomicInteger left;
        private final List<String> taken = new CopyOnWriteArrayList<>();

        Steps(int left) {
            this.left = new AtomicInteger(left);
        }

        List<String> taken() {
            return taken;
        }

        private void committed(String step) {
            taken.add(step);
            if (left.decrementAndGet() == 0) {
                throw new DiedException(step);
            }
        }
    }

    @Override
    public Connection getConnection() throws SQLException {
        Connection connection = super.getConnection();
        String[] step = {""};
        return (Connection) Proxy.newProxyInstance(
                DyingDataSource.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                (proxy, method, arguments) -> {
                    try {
                        if (method.getName().equals("prepareStatement")) {
                            Matcher matcher = STEP.matcher((String) arguments[0]);
                            step[0] = matcher.find() ? matcher.group(1) : step[0];
                        }
                        Object result = method.invoke(connection, arguments);
                        if (method.getName().equals("commit") && !step[0].isEmpty()) {
                            String committed = step[0];
                            step[0] = "";
                            steps.committed(committed);
                        }
                        return result;
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                });
    }
}
