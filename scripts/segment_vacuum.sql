-- Measures the WAL and the time of the vacuums of a segment, from its first event until all of it is frozen. The figures of
-- docs/decisions/0055-segments-are-frozen-while-they-grow.md come from it.
--
-- Usage, in any database that nothing else writes to, as a superuser:
--     psql -X -d DATABASE -v checkpoint_every=100000 -f scripts/segment_vacuum.sql
--
-- A million events with values of 200 bytes, with a checkpoint after each :checkpoint_every of them. VACUUM runs where autovacuum would:
--   former  after 500,000 events, again after 750,000 more, which a segment does not have
--   new15   10,000 events and a tenth of the segment after the last one (PostgreSQL 15 to 17)
--   new18   10,000 events after the last one, as all others are frozen (PostgreSQL 18)
-- At the end, as the vacuum against wraparound would: VACUUM (FREEZE).

\set ON_ERROR_STOP on
\set QUIET on
\pset pager off
\if :{?checkpoint_every} \else \set checkpoint_every 100000 \endif
SET client_min_messages = warning;

-- What begins when; temporary, so it writes no WAL.
CREATE TEMPORARY TABLE step (
    id      int GENERATED ALWAYS AS IDENTITY,
    variant text NOT NULL,
    name    text NOT NULL,
    lsn     pg_lsn NOT NULL DEFAULT pg_current_wal_insert_lsn(),
    at      timestamptz NOT NULL DEFAULT clock_timestamp());

CREATE TEMPORARY TABLE vacuum_after AS
WITH RECURSIVE new15 (events) AS (
    SELECT 10000
    UNION ALL
    SELECT events + 10000 + (events * 0.1)::int / 10000 * 10000 FROM new15 WHERE events < 1000000
)
SELECT 'former' AS variant, 500000 AS events
UNION ALL SELECT 'new15', events FROM new15
UNION ALL SELECT 'new18', generate_series(10000, 1000000, 10000);

SELECT format($$
        CREATE TABLE public.segment_%1$s (
            partition int NOT NULL, event_offset bigint PRIMARY KEY, key text, value bytea NOT NULL, headers jsonb,
            published_at timestamptz NOT NULL) WITH (autovacuum_enabled = off)$$, variant)
FROM (VALUES ('former'), ('new15'), ('new18')) AS v (variant) \gexec

SELECT s.statement
FROM (VALUES ('former'), ('new15'), ('new18')) AS v (variant)
CROSS JOIN generate_series(10000, 1000000, 10000) AS g (events)
CROSS JOIN LATERAL (VALUES
    (1, true, format($$INSERT INTO step (variant, name) VALUES (%L, 'events')$$, variant)),
    (2, true, format($$
        INSERT INTO public.segment_%1$s
        SELECT 0, o, 'order-' || o %% 1000, convert_to(repeat('x', 200), 'UTF8'), NULL, clock_timestamp()
        FROM generate_series(%2$s, %3$s) AS o$$, variant, events - 10000, events - 1)),
    (3, events % :checkpoint_every = 0, format($$INSERT INTO step (variant, name) VALUES (%L, 'checkpoints')$$, variant)),
    (4, events % :checkpoint_every = 0, 'CHECKPOINT'),
    (5, EXISTS (SELECT FROM vacuum_after a WHERE (a.variant, a.events) = (v.variant, g.events)),
     format($$INSERT INTO step (variant, name) VALUES (%L, 'vacuums while it grows')$$, variant)),
    (6, EXISTS (SELECT FROM vacuum_after a WHERE (a.variant, a.events) = (v.variant, g.events)),
     format('VACUUM (FREEZE %s) public.segment_%s', CASE variant WHEN 'former' THEN 'off' ELSE 'on' END, variant)),
    (7, events = 1000000, 'CHECKPOINT'),
    (8, events = 1000000, format($$INSERT INTO step (variant, name) VALUES (%L, 'vacuum against wraparound')$$, variant)),
    (9, events = 1000000, format('VACUUM (FREEZE) public.segment_%s', variant)),
    (10, events = 1000000, format($$INSERT INTO step (variant, name) VALUES (%L, 'end')$$, variant))
) AS s (number, is_due, statement)
WHERE s.is_due
ORDER BY v.variant, g.events, s.number \gexec

SELECT current_setting('server_version') AS version, :checkpoint_every AS checkpoint_every,
       pg_size_pretty(pg_table_size('public.segment_former')) AS size;

SELECT variant, name, count(*) AS times, round(sum(wal) / 1e6, 1) AS wal_mb, round(sum(ms)) AS ms
FROM (
    SELECT s.variant, s.name, s.id,
           lead(s.lsn) OVER (ORDER BY s.id) - s.lsn AS wal,
           extract(epoch FROM lead(s.at) OVER (ORDER BY s.id) - s.at) * 1000 AS ms
    FROM step s) AS of_step
WHERE name <> 'end'
GROUP BY variant, name
ORDER BY variant, min(id);

DROP TABLE public.segment_former, public.segment_new15, public.segment_new18;
