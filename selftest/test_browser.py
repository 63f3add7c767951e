"""The page in a real browser: tox -e browser, which fails where chromium or its driver is missing.

Elsewhere these tests are skipped: they need chromium, chromedriver and selenium.
"""

import json
import shutil
import subprocess
import sys

import pytest

from selftest.test_page import NASTY, NASTY_FILE
from selftest.toy import ATTENTION, ROOT

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "headless",
    "no-sandbox",
    "disable-gpu",
    "disable-quic",
    "no-first-run",
    "disable-background-networking",
    "disable-component-update",
    "disable-sync",
)
webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: tox -e browser")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium: tox -e browser")

VIEWS = [(theme, width) for theme in ("light", "dark") for width in (390, 1200)]
DIGEST = "scale.keeps-the-entropy"


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a real run: the reference, a mutant, and an implementation whose words are all markup."""
    folder = tmp_path_factory.mktemp("page")
    raises = ATTENTION.replace("    g =", f"    raise ValueError({NASTY!r})\n    g =")
    (folder / f"{NASTY_FILE}.py").write_text(f"{NASTY!r}\n" + raises)
    impls = ("--impl=refimpl", "--impl=mutants.no_scale", f"--impl={folder}/{NASTY_FILE}.py")
    command = (
        sys.executable,
        "-m",
        "pytest",
        "spec",
        "-p",
        "no:cacheprovider",
        "-k",
        "scale or causal",
        *impls,
    )
    path = folder / "page.html"
    done = subprocess.run(
        (*command, f"--report={path}"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert path.exists(), done.stdout[-2000:] + done.stderr[-2000:]
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(params=VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
def opened(request, browser, page):
    """The page, just opened, in each theme on a phone and on a wide screen."""
    theme, width = request.param
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    themed = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", themed)
    browser.get("about:blank")
    browser.get_log("performance")
    browser.get(page.as_uri())
    browser.theme = theme
    return browser


def ask(browser, script, *arguments):
    return browser.execute_script(f"return {script}", *arguments)


def choose(browser, id, value):
    script = "const e = document.getElementById(arguments[0]); e.value = arguments[1];"
    browser.execute_script(script + "e.dispatchEvent(new Event('input', {bubbles: true}))", id, value)


def shown(browser):
    return ask(browser, "[...document.querySelectorAll('.claim:not([hidden])')].map(row => row.id)")


def test_it_opens_without_a_request_a_script_of_theirs_or_sideways_scrolling(opened, page):
    ask(opened, "document.querySelectorAll('details').forEach(box => box.open = true)")
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = {e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"}
    assert {url for url in asked if not url.startswith("data:")} == {page.as_uri()}
    assert not [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"]
    assert ask(opened, "document.documentElement.scrollWidth <= innerWidth")
    assert ask(opened, "document.scripts.length") == 1
    assert ask(opened, "document.images.length") == 0


def test_theirs_would_not_run_even_unescaped(opened):
    script = "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title = 1\">')"
    opened.execute_script(script)
    opened.execute_async_script("setTimeout(arguments[0], 50)")
    assert opened.title == "Transformer spec: verdicts"
    assert "Content Security Policy" in " ".join(entry["message"] for entry in opened.get_log("browser"))


def test_the_theme_follows_the_system_and_the_button(opened):
    def dark():
        channels = ask(
            opened, "getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)"
        )
        return sum(channels[:3]) < 300

    assert dark() == (opened.theme == "dark")
    opened.find_element("id", "theme").click()
    assert dark() == (opened.theme == "light")


def test_filters_leave_the_claims_that_are_asked_for(opened):
    everything = shown(opened)
    assert len(everything) > 20
    choose(opened, "topic", "causal")
    assert {id.split(".")[0] for id in shown(opened)} == {"causal"}
    choose(opened, "topic", "")
    choose(opened, "impl", "mutants.no_scale")
    choose(opened, "verdict", "breaks error")
    broken = shown(opened)
    assert DIGEST in broken
    assert len(broken) < len(everything)
    assert ask(opened, "document.querySelectorAll('.card:not([hidden])').length") == 1
    choose(opened, "words", "entropy")
    assert shown(opened) == [DIGEST]
    assert ask(opened, "document.getElementById('shown').value") == f"1 of {len(everything)} claims"
    choose(opened, "verdict", "erratum")
    assert all(
        ask(opened, "'erratum' in document.getElementById(arguments[0]).dataset", id) for id in shown(opened)
    )


def test_a_link_opens_its_claim_even_one_that_is_filtered_away(opened, page):
    choose(opened, "topic", "causal")
    opened.find_element("css selector", f".card a[href='#{DIGEST}']").click()
    opened.execute_async_script("setTimeout(arguments[0], 100)")
    row = f"document.getElementById('{DIGEST}')"
    assert ask(opened, f"{row}.open")
    assert ask(
        opened, f"{row}.getBoundingClientRect().top >= 0 && {row}.getBoundingClientRect().top < innerHeight"
    )
    text = opened.find_element("id", DIGEST).text
    for said in ("measured", "expected", "Source: refresher", "Erratum", "no_scale"):
        assert said in text


def test_a_click_opens_and_closes_a_claim(opened):
    summary = opened.find_element("css selector", ".claim > summary")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", summary)
    summary.click()
    assert ask(opened, "document.querySelector('.claim').open")
    summary.click()
    assert not ask(opened, "document.querySelector('.claim').open")


def test_on_paper_it_is_light_and_without_controls(opened):
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert ask(opened, "getComputedStyle(document.getElementById('controls')).display") == "none"
        assert ask(opened, "getComputedStyle(document.documentElement).colorScheme") == "light"
        assert len(opened.execute_cdp_cmd("Page.printToPDF", {})["data"]) > 10_000
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
