import socket
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmark import kafka_server, nats_server, pgq_server, redis_server
from benchmark.debian import require_packages
from benchmark.errors import Failure, WrongInput
from benchmark.local_ports import HOST, free_port, is_open
from benchmark.processes import Processes
from benchmark.run_context import RunContext
from benchmark.servers import Environment, require_known, start_servers
from benchmark.signals import Signals


def wanted(
    server: str, databases: int = 0, standbys: str = "none", options: Mapping[str, str] | None = None
) -> Environment:
    return Environment(server, databases, standbys, options or {})


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (wanted("oracle"), "server must be one of postgres, postgres-pgq, kafka, redis, nats, none"),
        (wanted("postgres", 0), "databases of postgres must be between 1 and 64, but is 0"),
        (wanted("postgres-pgq", 2), "databases of postgres-pgq must be between 1 and 1, but is 2"),
        (wanted("postgres", 1, "some"), "standbys must be one of none, asynchronous, synchronous, quorum"),
        (wanted("redis", 0, "quorum"), "redis has no standbys"),
        (wanted("kafka", options={"fsync": "yes"}), "fsync of kafka must be one of true, false, but is yes"),
        (wanted("redis", options={"fsync": "true"}), "redis has no option fsync"),
    ],
)
def test_wrong_environments_are_named(environment: Environment, message: str) -> None:
    with pytest.raises(WrongInput, match=message):
        require_known(environment)


def test_known_environments_are_accepted() -> None:
    require_known(wanted("postgres", 3, "quorum"))
    require_known(wanted("postgres-pgq", 1))
    require_known(wanted("kafka", options={"fsync": "true"}))
    require_known(wanted("redis", options={"appendfsync": "always"}))
    require_known(wanted("nats", options={"sync": "always"}))
    require_known(wanted("postgres", 1, options={"pgmq": "true"}))


def test_no_server_starts_nothing(tmp_path: Path) -> None:
    with Processes(Signals(), tmp_path, tmp_path) as processes:
        servers = start_servers(RunContext(tmp_path, tmp_path, tmp_path, processes), wanted("none"), 0)

    assert servers.variables == {"EVENTSQL_SERVER": "none", "EVENTSQL_STANDBYS": "none"}
    assert not servers.process_ids
    assert not servers.needed


def test_redis_keeps_every_write_in_its_folder(tmp_path: Path) -> None:
    command = redis_server.command(tmp_path, 7001, "always")

    assert command[command.index("--appendfsync") + 1] == "always"
    assert command[command.index("--appendonly") + 1] == "yes"
    assert command[command.index("--bind") + 1] == "127.0.0.1"
    assert command[command.index("--dir") + 1] == str(tmp_path)


def test_nats_flushes_each_event_only_when_asked(tmp_path: Path) -> None:
    with_sync = nats_server.settings(tmp_path, 7001, "always").splitlines()
    without = nats_server.settings(tmp_path, 7001, "interval").splitlines()

    assert set(with_sync) - set(without) == {"  sync_interval: always"}
    assert "listen: 127.0.0.1:7001" in without
    assert f'  store_dir: "{tmp_path}/data"' in without


def test_kafka_flushes_only_when_asked(tmp_path: Path) -> None:
    with_fsync = kafka_server.settings(tmp_path, 7001, 7002, "true").splitlines()
    without = kafka_server.settings(tmp_path, 7001, 7002, "false").splitlines()

    assert set(with_fsync) - set(without) == {"log.flush.interval.messages=1"}
    assert "listeners=PLAINTEXT://127.0.0.1:7001,CONTROLLER://127.0.0.1:7002" in without
    assert f"log.dirs={tmp_path}/data" in without


def test_kafka_version_is_that_of_its_jar(tmp_path: Path) -> None:
    (tmp_path / "kafka-clients-4.2.1.jar").touch()
    (tmp_path / "kafka-storage-9.9.9.jar").touch()

    assert kafka_server.version(tmp_path) == "4.2.1"
    with pytest.raises(Failure, match="no Kafka"):
        kafka_server.version(tmp_path / "nothing")


def test_kafka_jars_copied_in_part_are_copied_again(tmp_path: Path) -> None:
    pom = tmp_path / kafka_server.BROKER / "pom.xml"
    jar = tmp_path / kafka_server.BROKER / "target/lib/kafka.jar"
    maven = tmp_path / "scripts/lib/maven.bash"
    for file in (pom, jar, maven):
        file.parent.mkdir(parents=True)
    pom.write_text("<project/>")
    jar.write_text("a part")
    maven.write_text("require_maven() { MAVEN=(bash copy); }")
    # Like Maven, it keeps a file that exists.
    (tmp_path / "copy").write_text(f"mkdir -p '{jar.parent}'; [ -e '{jar}' ] || echo all >'{jar}'")

    assert kafka_server.require_libraries(tmp_path) == jar.parent
    assert jar.read_text() == "all\n"
    # Without Maven.
    maven.unlink()
    assert kafka_server.require_libraries(tmp_path) == jar.parent


def test_pgq_has_the_settings_of_all_databases() -> None:
    settings = pgq_server.settings(
        "fsync = on\n", 7003, "# x\ndynamic_shared_memory_type = sysv\t# comment\n"
    )

    assert settings.startswith("fsync = on\n")
    assert "listen_addresses = '127.0.0.1'" in settings
    assert "port = 7003" in settings
    assert settings.endswith("dynamic_shared_memory_type = sysv\n")


def test_free_port_is_not_open_until_a_process_listens() -> None:
    port = free_port()
    assert not is_open(port)
    with socket.create_server((HOST, port)):
        assert is_open(port)


def test_installed_packages_are_not_installed_again(tmp_path: Path) -> None:
    require_packages(tmp_path, ["no-such-package-at-all"])


def test_packages_need_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    with pytest.raises(WrongInput, match="apt-get install redis-server"):
        require_packages(tmp_path / "missing", ["redis-server"])
