package io.eventsql.internal.pool;

import java.lang.reflect.InvocationTargetException;
import java.util.List;
import java.util.OptionalInt;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Determines the maximum size of a connection pool. Calls the pool's getter by name, because the library depends on no
 * pool: an unknown pool only means that its size is not checked.
 */
public final class PoolSize {
    private static final Logger LOG = LoggerFactory.getLogger(PoolSize.class);
    /** Of HikariCP, Commons DBCP, Tomcat JDBC and c3p0. */
    private static final List<String> GETTERS =
            List.of("getMaximumPoolSize", "getMaxTotal", "getMaxActive", "getMaxPoolSize");
    /** Of Spring's wrappers. */
    private static final String TARGET_GETTER = "getTargetDataSource";

    private static final int WRAPPERS_MAX = 5;

    private PoolSize() {}

    /** Returns the maximum size of the pool; empty if it is unlimited or cannot be determined. */
    public static OptionalInt max(DataSource dataSource) {
        @Nullable Object candidate = dataSource;
        for (int depth = 0; candidate != null && depth < WRAPPERS_MAX; depth++) {
            for (String getter : GETTERS) {
                if (call(candidate, getter) instanceof Integer size) {
                    return size > 0 ? OptionalInt.of(size) : OptionalInt.empty();
                }
            }
            candidate = call(candidate, TARGET_GETTER);
        }
        return OptionalInt.empty();
    }

    private static @Nullable Object call(Object target, String getter) {
        try {
            return target.getClass().getMethod(getter).invoke(target);
        } catch (NoSuchMethodException e) {
            return null;
        } catch (IllegalAccessException | InvocationTargetException | RuntimeException e) {
            LOG.debug("Could not determine the size of the pool {}", target.getClass(), e);
            return null;
        }
    }
}
