"""What the microbenchmarks print of JMH's results."""

from microbenchmarks import Measured, parser, table


def entry(name: str, allocated: float, parameters: dict[str, str] | None = None) -> dict[str, object]:
    result: dict[str, object] = {
        "benchmark": f"io.eventsql.microbenchmarks.{name}",
        "primaryMetric": {"score": 12.3456},
        "secondaryMetrics": {"gc.count": {"score": 7}, "gc.alloc.rate.norm": {"score": allocated}},
    }
    return result if parameters is None else result | {"params": parameters}


def test_read_entry_has_the_bytes_of_an_event() -> None:
    assert Measured.read(entry("ReadBenchmark.page", 565.61, {"headers": "2"})) == Measured(
        "ReadBenchmark.page", {"headers": "2"}, 565.6, 12.346
    )


def test_table_has_a_line_for_each_benchmark() -> None:
    measured = [
        Measured.read(entry("ReadBenchmark.page", 565.61, {"headers": "2"})),
        Measured.read(entry("HeadersBenchmark.encode", 232)),
    ]

    assert table(measured).splitlines() == [
        "benchmark                        parameters    bytes/event   us/event",
        "ReadBenchmark.page               headers=2             566      12.35",
        "HeadersBenchmark.encode                                232      12.35",
    ]


def test_parser_only_may_be_repeated() -> None:
    options = parser().parse_args(["--only", "Read", "--only=Headers", "--smoke"])

    assert (options.only, options.smoke) == (["Read", "Headers"], True)
