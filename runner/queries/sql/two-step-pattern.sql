-- The ball passes the left edge of the field and then, within a second, the upper one.
SELECT sensor, left_at_ms, upper_at_ms, published_at
FROM ball_positions MATCH_RECOGNIZE (
    PARTITION BY sensor
    ORDER BY `at`
    MEASURES
        l.at_ms AS left_at_ms,
        u.at_ms AS upper_at_ms,
        u.published_at AS published_at
    ONE ROW PER MATCH
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (l b* u) WITHIN INTERVAL '1' SECOND
    DEFINE
        l AS l.x < 1000,
        b AS b.y < 9000,
        u AS u.y >= 9000);
