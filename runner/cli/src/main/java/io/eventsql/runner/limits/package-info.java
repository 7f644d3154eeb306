/**
 * How close the library comes to what PostgreSQL can do, and what else holds only if its plans and tables are right: each
 * part measured in one run, on one database. Also SQL that goes past the library, and so knows its tables.
 */
@NullMarked
package io.eventsql.runner.limits;

import org.jspecify.annotations.NullMarked;
