package io.eventsql.spring.internal;

import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;

/**
 * Unwraps the proxies of data sources that hand out the connection of the current transaction. The data sources of
 * EventSQL and those of the listeners' transaction managers are compared unwrapped, so both must be unwrapped here.
 */
public final class DataSourceProxies {

    private DataSourceProxies() {}

    /** Returns the proxied data source. The library commits its own transactions: it must not use the caller's. */
    public static DataSource unwrap(DataSource dataSource) {
        DataSource target = dataSource;
        while ((target instanceof TransactionAwareDataSourceProxy || target instanceof LazyConnectionDataSourceProxy)
                && target instanceof DelegatingDataSource proxy
                && proxy.getTargetDataSource() != null) {
            target = proxy.getTargetDataSource();
        }
        return target;
    }
}
