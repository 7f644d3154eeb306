"""Opens pages in a real browser: no errors, nothing is loaded, every plot is visible."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

pytestmark = pytest.mark.slow

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,1000",
    "about:blank",
)
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
IMAGES = """
return [...document.querySelectorAll('img, svg')].map(image => {
  const box = image.getBoundingClientRect();
  const loaded = image.tagName !== 'IMG' || (image.complete && image.naturalWidth > 0);
  return [image.dataset.plot || image.getAttribute('src'), loaded && box.width > 0 && box.height > 0];
});
"""


@dataclass(frozen=True)
class Browser:
    driver: webdriver.Chrome

    def open(self, page: Path) -> list[str]:
        """Opens a page; returns all errors found on it."""
        self.driver.get("about:blank")
        # Earlier requests of the browser, for itself or for another page, do not count.
        for log in ("browser", "performance"):
            self.driver.get_log(log)  # type: ignore[no-untyped-call]
        self.driver.get(page.as_uri())
        problems = [
            f"console: {entry['message']}"
            for entry in self.driver.get_log("browser")  # type: ignore[no-untyped-call]
            if entry["level"] == "SEVERE"
        ]
        for entry in self.driver.get_log("performance"):  # type: ignore[no-untyped-call]
            event = json.loads(entry["message"])["message"]
            if event["method"] == "Network.loadingFailed":
                problems.append(f"failed: {event['params']['errorText']}")
            if event["method"] == "Network.requestWillBeSent":
                url = event["params"]["request"]["url"]
                if url != page.as_uri() and not url.startswith("data:"):
                    problems.append(f"loaded: {url}")
        problems += [f"not to be seen: {name}" for name, visible in self.ask(IMAGES) if not visible]
        return problems

    def ask(self, script: str) -> Any:  # noqa: ANN401  # what the script returns
        return self.driver.execute_script(script)

    def headings(self) -> list[str]:
        return list(self.ask("return [...document.querySelectorAll('h1, h2')].map(h => h.textContent)"))

    def plots(self) -> list[str]:
        return [name for name, _ in self.ask(IMAGES)]

    def command(self, name: str, **arguments: object) -> None:
        self.driver.execute_cdp_cmd(name, arguments)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no chromium and chromedriver (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Selenium must not search for or download programs; both are given.
    os.environ["SE_OFFLINE"] = "true"
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(started)
    finally:
        started.quit()


def test_report_is_complete(browser: Browser, drawn: Path) -> None:
    assert browser.open(drawn / "2-failed" / "report.html") == []

    assert browser.headings() == [
        *("fan-out: failed", "Rates", "Latency over time", "Latency by percentile", "Lag and in flight"),
        *("Resources", "Tables and vacuum", "Numbers", "Guarantees", "Machine and versions", "Settings"),
        "Repeat",
    ]
    assert browser.plots() == ["rates", "latency", "percentiles", "backlog", "resources", "tables"]


def test_comparison_is_complete(browser: Browser, drawn: Path) -> None:
    assert browser.open(drawn / "comparison.html") == []

    assert browser.headings() == [
        *("3 runs", "blast", "fan-out", "rate", "Trials", "Numbers and guarantees"),
        *("Machine and versions", "Repeat"),
    ]
    assert browser.plots() == [
        "comparison-blast-blast",
        *(f"comparison-fan-out-{name}" for name in ("throughput", "latency", "end-to-end")),
        *(f"comparison-rate-{name}" for name in ("throughput", "latency", "end-to-end")),
    ]


def test_report_fits_a_phone(browser: Browser, drawn: Path) -> None:
    browser.command("Emulation.setDeviceMetricsOverride", **PHONE)
    try:
        assert browser.open(drawn / "2-failed" / "report.html") == []
        assert browser.ask("return [window.innerWidth, document.documentElement.scrollWidth]") == [390, 390]
    finally:
        browser.command("Emulation.clearDeviceMetricsOverride")


def test_report_is_readable_in_dark_mode(browser: Browser, drawn: Path) -> None:
    paper_and_plot = """
    return [getComputedStyle(document.body).backgroundColor,
            getComputedStyle(document.querySelector('svg text')).fill]"""
    shown = {}
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.command("Emulation.setEmulatedMedia", features=[feature])
        browser.open(drawn / "2-failed" / "report.html")
        shown[scheme] = browser.ask(paper_and_plot)
    browser.command("Emulation.setEmulatedMedia", features=[])

    assert shown["light"][0] == "rgb(255, 255, 255)"
    assert shown["dark"][0] == "rgb(13, 17, 23)"
    assert shown["light"][1] != shown["dark"][1]


def test_broken_page_is_detected(browser: Browser, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(
        '<link rel="icon" href="data:,"><h1>Broken</h1><img src="missing.png">'
        '<svg data-plot="empty" width="0" height="0"></svg><script>undefinedFunction()</script>'
    )

    problems = browser.open(broken)

    assert any("undefinedFunction is not defined" in problem for problem in problems)
    assert f"loaded: {(tmp_path / 'missing.png').as_uri()}" in problems
    assert "failed: net::ERR_FILE_NOT_FOUND" in problems
    assert "not to be seen: missing.png" in problems
    assert "not to be seen: empty" in problems
