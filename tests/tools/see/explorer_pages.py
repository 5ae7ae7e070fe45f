"""What the tests of the explorer's pages share: recordings, pages of them, and a real Chromium that shows them.

Tests are functions of a module: those with a parameter get a Page. run(globals()) runs them; ONLY=part of a name chooses some.
"""

import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

EXPLORE, MAKER = sys.argv[1:3]
WORK = pathlib.Path(tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR")))


def skip(why):
    print("skipped: " + why)
    sys.exit(0)


def check(right, what):
    if not right:
        raise AssertionError(what)


def recording(kind):
    path = WORK / (kind + ".rec")
    if not path.exists():
        subprocess.run([sys.executable, MAKER, kind, str(path)], check=True)
    return path


def data_of(kind):
    return json.loads(gzip.open(recording(kind), "rb").read())


def put(name, data):
    path = WORK / name
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    return path


def page(*kinds):
    """Of kinds of make_recording.py, or of recordings that are there."""
    paths = [k if isinstance(k, pathlib.Path) else recording(k) for k in kinds]
    out = WORK / ("_".join(p.name for p in paths) + ".html")
    if not out.exists():
        subprocess.run([EXPLORE, *map(str, paths), "-o", str(out)], check=True, stdout=subprocess.DEVNULL)
    return out


def browser():
    for program in ("chromium", "chromedriver"):
        if not shutil.which(program):
            skip("no %s here (./tools/setup.sh page)" % program)
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        skip("python3 has no module selenium (./tools/setup.sh page)")
    options = Options()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-device-scale-factor=1",
                     "--user-data-dir=%s" % (WORK / "profile")):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)


class Page:
    def __init__(self, driver):
        self.driver = driver

    def js(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def size(self, width, height, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                  {"name": "prefers-reduced-motion", "value": "reduce"}]})

    def open(self, path, width=1366, height=768, dark=False):
        self.size(width, height, dark)
        self.logs()
        self.driver.get("file://" + str(path))
        self.until("return !!(window.explorer && explorer.ready && explorer.view.drawn.nodes !== undefined)")
        return self

    def logs(self):
        return self.driver.get_log("browser"), self.driver.get_log("performance")

    def until(self, text, seconds=20):
        end = time.time() + seconds
        while time.time() < end:
            got = self.js(text)
            if got:
                return got
            time.sleep(0.02)
        raise AssertionError("not within %d s: %s" % (seconds, text))

    def frame(self):
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(done))")

    def drawn(self):
        self.frame()
        return self.js("return explorer.drawn")

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def press(self, name):
        self.driver.find_element("id", name).click()

    def click_at(self, canvas, x, y, twice=False):
        from selenium.webdriver.common.action_chains import ActionChains
        element = self.driver.find_element("id", canvas)
        box = self.js("const b = arguments[0].getBoundingClientRect(); return [b.width, b.height]", element)
        actions = ActionChains(self.driver).move_to_element_with_offset(element, int(x - box[0] / 2), int(y - box[1] / 2))
        (actions.double_click() if twice else actions.click()).perform()

    def click_item(self, item, twice=False):
        self.frame()
        x, y = self.js("const i = explorer.placement.items[arguments[0]], t = explorer.view.transform;"
                       "return [(i.x + i.w / 2) * t.k + t.x, (i.y + i.h / 2) * t.k + t.y]", item)
        self.click_at("graph", x, y, twice)

    @property
    def position(self):
        return self.js("return explorer.position")

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).textContent", selector)


def formatted(x):
    """base.js's formatNumber."""
    if x == 0:
        return "0"
    if abs(x) >= 1e5 or abs(x) < 1e-3:
        mantissa, exponent = ("%.2e" % x).split("e")
        return "%se%s%d" % (mantissa, "+" if int(exponent) >= 0 else "", int(exponent))
    text = "%.4g" % x
    return text


def quiet(p):
    """No error, and no request but for the page itself."""
    console, performance = p.logs()
    check(not [e for e in console if e["level"] == "SEVERE"], console)
    for entry in performance:
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"]
            check(url.startswith(("file://" + str(WORK), "data:")), "a request: " + url)


def run(names, pictures=None):
    tests = [f for name, f in names.items() if name.startswith("test_")]
    plain = [f for f in tests if f.__code__.co_argcount == 0]
    only = os.environ.get("ONLY", "")
    for test in plain:
        if only in test.__name__ and pictures is None:
            test()
            print("passed: " + test.__name__)
    driver = browser()
    try:
        if pictures is not None:
            return pictures(Page(driver))
        for test in tests:
            if test not in plain and only in test.__name__:
                began = time.time()
                test(Page(driver))
                print("passed: %s (%.1f s)" % (test.__name__, time.time() - began), flush=True)
    finally:
        driver.quit()
        shutil.rmtree(WORK, ignore_errors=True)
