"""The report page in a real browser: Chromium, headless, from disk, without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris

import vicinal as vc
from vicinal.automatic.classifier import ANNClassifier
from vicinal.automatic.regressor import ANNRegressor
from vicinal.reporting import report

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not there"),
    # selenium leaves the sockets of its session to the garbage collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOSTILE = "</script><img src=x onerror='window.hacked = 1'><script>window.hacked = 1</script>"
SETTLED = "return document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_window_size(1280, 1000)
    yield driver
    driver.quit()


def blobs(n: int, d: int, c: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = np.arange(n) % c
    return rng.normal(size=(n, d)) + rng.normal(scale=3, size=(c, d))[y], y


def iris_page(folder: Path) -> Path:
    X, y = load_iris(return_X_y=True)
    test = np.arange(150) % 3 == 0
    model = ANNClassifier().fit(X[~test], y[~test])
    return report(
        model, X[~test], y[~test], folder / "iris.html", X_test=X[test], y_test=y[test],
        title="Iris",
    )  # fmt: skip


def hostile_page(folder: Path) -> Path:
    X, codes = blobs(60, 2, 2)
    y = np.array([HOSTILE, "b"])[codes]
    return report(
        vc.RVML().fit(X, y), X, y, folder / "hostile.html",
        feature_names=["<script>window.hacked = 1</script>", HOSTILE], ids=[HOSTILE] * 60,
        title=HOSTILE, provenance={HOSTILE: [HOSTILE]},
    )  # fmt: skip


def blobs_page(folder: Path, n: int, d: int, c: int, **settings: Any) -> Path:
    X, y = blobs(n, d, c)
    return report(vc.RVML(**settings).fit(X, y), X, y, folder / f"{n}-{d}-{c}.html")


def numbers_page(folder: Path) -> Path:
    """A number, a category with long names, and a target; two rows far from all others."""
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=120), rng.integers(0, 3, 120)
    x[:2] = 90.0
    names = np.array([f"a long name of kind number {k} of three" for k in range(3)])
    X = np.column_stack([x.astype(object), names[kind]])
    y = np.minimum(x, 3.0) + kind
    model = ANNRegressor(effort=0.03).fit(X, y)
    return report(model, X, y, folder / "numbers.html")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    return {
        "iris": iris_page(folder),
        "hostile": hostile_page(folder),
        "one feature, two classes, 30 rows": blobs_page(folder, 30, 1, 2),
        "26 classes": blobs_page(folder, 260, 40, 26),
        "kernel": blobs_page(folder, 60, 3, 3, kernel="rbf"),
        "numbers": numbers_page(folder),
    }


PAGES = ("iris", "hostile", "one feature, two classes, 30 rows", "26 classes", "kernel", "numbers")


def show(browser: Any, path: Path, width: int = 1280) -> None:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.get(path.as_uri())


def panel(browser: Any) -> str:
    return browser.find_element("id", "neighborhood").text


def click_point(browser: Any, which: str, point: int) -> None:
    browser.execute_script(
        """const svg = document.querySelector(`#map-${arguments[0]} svg`);
        const dot = svg.querySelectorAll('.dot')[arguments[1]].getBoundingClientRect();
        svg.dispatchEvent(new MouseEvent('click', {bubbles: true,
          clientX: dot.x + dot.width / 2, clientY: dot.y + dot.height / 2}));""",
        which,
        point,
    )


@pytest.mark.parametrize("name", PAGES)
def test_loads_without_errors_and_fits_any_width(name, pages, browser):
    for width in (1280, 390):
        show(browser, pages[name], width)
        assert browser.execute_script(SETTLED), browser.get_log("browser")
        assert browser.get_log("browser") == []
        overflow = "return document.documentElement.scrollWidth - innerWidth"
        assert browser.execute_script(overflow) <= 0
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert len(browser.find_elements("css selector", "section")) == 7


def test_texts_of_the_data_do_nothing(pages, browser):
    show(browser, pages["hostile"])
    assert browser.execute_script("return window.hacked") is None
    assert browser.find_elements("css selector", "img") == []
    assert browser.find_element("id", "title").text == HOSTILE
    assert HOSTILE[:39] in panel(browser)
    assert len(browser.find_elements("css selector", "script")) == 2


def test_policy_stops_what_might_be_injected(pages, browser):
    show(browser, pages["iris"])
    browser.execute_script(
        """const script = document.createElement('script');
        script.textContent = 'window.hacked = 1'; document.body.append(script);
        document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="window.hacked = 1">');"""
    )
    assert browser.execute_script("return window.hacked") is None
    assert all(
        "Content Security Policy" in entry["message"] for entry in browser.get_log("browser")
    )


@pytest.mark.parametrize("which", ["before", "after"])
def test_a_click_shows_the_neighbors_of_the_point(which, pages, browser):
    show(browser, pages["iris"])
    first = panel(browser)
    click_point(browser, which, 3)
    second = panel(browser)
    click_point(browser, which, 90)
    assert second not in {first, panel(browser)}  # either may be the row that the page begins with
    k = len(browser.find_elements("css selector", "#neighborhood tbody tr")) // 2
    for when in ("before", "after"):
        for place in ("before", "after"):  # both neighborhoods are drawn in both maps
            lines = browser.find_elements("css selector", f"#map-{place} line.edge.{when}")
            assert len(lines) == k


def test_how_many_neighbors_decide_is_said_below_the_table(pages, browser):
    show(browser, pages["iris"])
    note = browser.find_element("id", "maps-note").text
    maps = "return JSON.parse(document.getElementById('findings').textContent).maps.voters"
    voters = browser.execute_script(maps)
    assert voters in note


def test_the_table_is_that_of_the_findings(pages, browser):
    show(browser, pages["iris"])
    agree = browser.execute_script(
        """const data = JSON.parse(document.getElementById('findings').textContent).maps;
        const rows = [...document.querySelectorAll('#neighborhood table:last-child tbody tr')];
        return rows.every((row, j) => row.querySelector('button').textContent ===
          data.ids[data.near_after.rows[data.focus][j]]) && rows.length;"""
    )
    assert agree >= 5


def test_keys_move_the_selection(pages, browser):
    show(browser, pages["iris"])
    drawing = browser.find_element("css selector", "#map-after svg")
    before = panel(browser)
    for key in ("\ue014", "\ue012"):  # right, and left for a point on the edge
        drawing.send_keys(key)
    drawing.send_keys("\ue013")  # up
    drawing.send_keys("\ue015")  # down
    drawing.send_keys("\ue012")
    assert panel(browser) != before
    drawing.send_keys("\ue00c")  # Escape
    assert "No row is selected" in panel(browser)


def test_a_row_at_risk_leads_to_the_maps(pages, browser):
    show(browser, pages["iris"])
    link = browser.find_elements("css selector", "#risk button")[1]
    browser.execute_script("arguments[0].click()", link)
    assert browser.find_element("css selector", "#neighborhood h3").text.startswith(link.text)


def test_hover_names_the_row(pages, browser):
    show(browser, pages["iris"])
    browser.execute_script(
        """const svg = document.querySelector('#map-before svg');
        const dot = svg.querySelector('.dot').getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent('pointermove', {bubbles: true,
          clientX: dot.x + dot.width / 2, clientY: dot.y + dot.height / 2}));"""
    )
    tip = browser.find_element("id", "tip").text
    assert "label: " in tip
    assert "predicted: " in tip


def test_both_themes(pages, browser):
    def paper() -> str:
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    seen = {}
    for scheme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        show(browser, pages["iris"])
        seen[scheme] = paper()
        browser.find_element("id", "theme").click()
        seen[f"{scheme}, switched"] = paper()
    assert seen["light"] == seen["dark, switched"]
    assert seen["dark"] == seen["light, switched"]
    assert seen["light"] != seen["dark"]
    assert browser.get_log("browser") == []


PLACES = """return [...document.querySelectorAll('#map-before .dot')].map((dot) =>
  dot.getAttribute('transform').match(/-?[\\d.]+/g).map(Number))"""


def wheel(browser: Any, turns: int, delta: int) -> None:
    browser.execute_script(
        """const svg = document.querySelector('#map-before svg'), box = svg.getBoundingClientRect();
        for (let i = 0; i < arguments[0]; i++) svg.dispatchEvent(new WheelEvent('wheel', {
          deltaY: arguments[1], clientX: box.x + box.width / 2,
          clientY: box.y + box.height / 2}));""",
        turns,
        delta,
    )


def test_outliers_wait_at_the_rim_and_the_wheel_zooms(pages, browser):
    show(browser, pages["numbers"])
    before = np.array(browser.execute_script(PLACES))
    rim = browser.execute_script(
        "return [...document.querySelectorAll('#map-before .dot')].map((dot) =>"
        " dot.classList.contains('rim'))"
    )
    assert np.flatnonzero(rim).tolist() == [0, 1]
    spread = np.ptp(before[2:], axis=0)
    assert spread.max() > 150  # of 480: the other rows are not squeezed into a corner
    wheel(browser, 4, -120)
    nearer = np.array(browser.execute_script(PLACES))
    assert np.ptp(nearer[2:], axis=0).max() > 2 * spread.max()
    browser.execute_script("document.querySelector('#map-before .whole').click()")
    np.testing.assert_allclose(browser.execute_script(PLACES), before)
    wheel(browser, 40, 120)
    farther = np.array(browser.execute_script(PLACES))
    assert np.ptp(farther[2:], axis=0).max() < 0.9 * spread.max()
    assert ((farther >= 0) & (farther <= 480)).all()


def test_numbers_have_intervals_residuals_and_worst_cases(pages, browser):
    show(browser, pages["numbers"])
    found = lambda css: browser.find_elements("css selector", css)  # noqa: E731
    assert found("#class-errors") == []
    assert len(found("#scatter .spot")) == 120
    assert len(found("#coverage circle")) == 6
    assert "a long name" in browser.find_element("id", "by-feature").text
    name = found("#worst tbody tr button")[0]
    wanted = name.text
    browser.execute_script("arguments[0].click()", name)
    assert panel(browser).startswith(wanted)
    assert "predicted" in panel(browser)
