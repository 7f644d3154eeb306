package io.eventsql.spring;

import javax.sql.DataSource;
import org.springframework.jdbc.datasource.DelegatingDataSource;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;

/**
 * Looks behind the data sources that hand out the connection of the current transaction. What EventSQL is given and what
 * its listeners' transaction managers have are compared by this: both must look the same way.
 */
public final class TransactionProxies {

    private TransactionProxies() {}

    /** The data source behind them. The library commits its own transactions: it must not be given the caller's. */
    public static DataSource behind(DataSource dataSource) {
        DataSource target = dataSource;
        while ((target instanceof TransactionAwareDataSourceProxy || target instanceof LazyConnectionDataSourceProxy)
                && target instanceof DelegatingDataSource proxy
                && proxy.getTargetDataSource() != null) {
            target = proxy.getTargetDataSource();
        }
        return target;
    }
}
