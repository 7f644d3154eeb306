package io.eventsql.internal.pool;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.sql.SQLException;
import java.util.List;
import java.util.OptionalInt;
import java.util.Set;
import javax.sql.DataSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Determines the maximum size of a connection pool. Calls the pool's getters by name, because the library depends on no
 * pool: an unknown pool only means that its size is not checked.
 */
public final class PoolSize {
    /** The size of a pool without a maximum, and of a data source that opens a connection for each call. */
    public static final int UNLIMITED = Integer.MAX_VALUE;

    private static final Logger LOG = LoggerFactory.getLogger(PoolSize.class);

    /** Of HikariCP, Commons DBCP, Tomcat JDBC, c3p0 and Agroal; each getter is called on the result of the one before. */
    private static final List<List<String>> GETTERS = List.of(
            List.of("getMaximumPoolSize"),
            List.of("getMaxTotal"),
            List.of("getMaxActive"),
            List.of("getMaxPoolSize"),
            List.of("getConfiguration", "connectionPoolConfiguration", "maxSize"));

    private static final Set<String> WITHOUT_POOL = Set.of(
            "org.postgresql.ds.PGSimpleDataSource",
            "org.springframework.jdbc.datasource.DriverManagerDataSource",
            "org.springframework.jdbc.datasource.SimpleDriverDataSource");
    /** Found behind wrappers that only offer {@link java.sql.Wrapper}, such as those for tracing. */
    private static final List<String> POOLS = List.of(
            "com.zaxxer.hikari.HikariDataSource",
            "org.apache.commons.dbcp2.BasicDataSource",
            "org.apache.tomcat.jdbc.pool.DataSource",
            "com.mchange.v2.c3p0.ComboPooledDataSource",
            "io.agroal.api.AgroalDataSource");
    /** Of Spring's wrappers. */
    private static final String TARGET_GETTER = "getTargetDataSource";

    private static final int WRAPPERS_MAX = 5;

    private PoolSize() {}

    /** Returns the maximum size of the pool, which may be {@link #UNLIMITED}; empty if it cannot be determined. */
    public static OptionalInt max(DataSource dataSource) {
        @Nullable Object candidate = dataSource;
        for (int depth = 0; candidate != null && depth < WRAPPERS_MAX; depth++) {
            for (List<String> getters : GETTERS) {
                if (callAll(candidate, getters) instanceof Integer size) {
                    return OptionalInt.of(size > 0 ? size : UNLIMITED);
                }
            }
            if (WITHOUT_POOL.contains(candidate.getClass().getName())) {
                return OptionalInt.of(UNLIMITED);
            }
            candidate = unwrap(candidate);
        }
        return OptionalInt.empty();
    }

    private static @Nullable Object unwrap(Object wrapper) {
        @Nullable Object target = call(wrapper, TARGET_GETTER);
        if (target != null || !(wrapper instanceof DataSource dataSource)) {
            return target;
        }
        for (String name : POOLS) {
            try {
                Class<?> pool = Class.forName(name, false, wrapper.getClass().getClassLoader());
                if (!pool.isInstance(wrapper) && dataSource.isWrapperFor(pool)) {
                    return dataSource.unwrap(pool);
                }
            } catch (ClassNotFoundException e) {
                LOG.trace("The application does not use {}", name, e);
            } catch (SQLException | RuntimeException e) {
                LOG.debug("Could not unwrap {}", wrapper.getClass(), e);
            }
        }
        return null;
    }

    private static @Nullable Object callAll(Object target, List<String> getters) {
        @Nullable Object result = target;
        for (String getter : getters) {
            result = result == null ? null : call(result, getter);
        }
        return result;
    }

    private static @Nullable Object call(Object target, String getter) {
        @Nullable Method method = findAccessible(target.getClass(), getter);
        try {
            return method == null ? null : method.invoke(target);
        } catch (IllegalAccessException | InvocationTargetException | RuntimeException e) {
            LOG.debug("Could not determine the size of the pool {}", target.getClass(), e);
            return null;
        }
    }

    /** Returns the method as a public type declares it: the class itself may be hidden behind an interface. */
    private static @Nullable Method findAccessible(@Nullable Class<?> type, String name) {
        if (type == null) {
            return null;
        }
        if (Modifier.isPublic(type.getModifiers())) {
            for (Method method : type.getMethods()) {
                if (method.getName().equals(name)
                        && method.getParameterCount() == 0
                        && Modifier.isPublic(method.getDeclaringClass().getModifiers())) {
                    return method;
                }
            }
        }
        for (Class<?> each : type.getInterfaces()) {
            @Nullable Method found = findAccessible(each, name);
            if (found != null) {
                return found;
            }
        }
        return findAccessible(type.getSuperclass(), name);
    }
}
