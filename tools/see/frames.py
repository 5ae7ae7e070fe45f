#!/usr/bin/env python3
"""How long the explorer takes for a frame, in Chromium without a screen.

    frames.py EXPLORE [MAKE_RECORDING]    prints a table: graphs of 100, 1,000 and 10,000 nodes

For each graph: how large the page is, how long it takes to be there, and what one frame costs (median and worst, on the processor): all of
the graph with every module open; its middle, close; walking through events there; a drag across it. Chromium draws without a card here.
"""

import pathlib
import subprocess
import sys
import tempfile
import time

EVENTS = """
const done = arguments[0], app = explorer, times = [];
const what = %s;
let i = 0;
const step = () => {
  if (i === 60) {
    times.sort((a, b) => a - b);
    return done([times[30], times[59], app.drawn.nodes + app.drawn.groups, app.drawn.edges]);
  }
  const began = performance.now();
  what(i++);
  for (const side of app.sides) side.view.drawNow();
  app.timeline.drawNow();
  times.push(performance.now() - began);
  requestAnimationFrame(step);
};
step();
"""
LOOKS = (("all, every module open", "explorer.toLevel(99); explorer.side.input.fit(true)", "(i) => explorer.goTo(explorer.position + 1)"),
         ("its middle, walking", "explorer.showNode(Math.floor(explorer.model.nodes.length / 2))", "(i) => explorer.goTo(explorer.position + 1, 1)"),
         ("a drag across it", "0", "(i) => { explorer.view.transform = explorer.view.transform.translate(0, i < 30 ? -40 : 40); }"),
         ("modules closed", "explorer.toLevel(2); explorer.side.input.fit()", "(i) => explorer.goTo(explorer.position + 1)"))


def main():
    from selenium import webdriver
    explore = sys.argv[1]
    maker = sys.argv[2] if len(sys.argv) > 2 else str(pathlib.Path(__file__).parents[2] / "tests/tools/see/make_recording.py")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1366,768"):
        options.add_argument(argument)
    driver = webdriver.Chrome(options=options)
    print("%-8s %-24s %12s %12s %8s %8s" % ("nodes", "what", "median ms", "worst ms", "boxes", "edges"))
    try:
        with tempfile.TemporaryDirectory() as work:
            for nodes in (100, 1000, 10000):
                recording, page = work + "/recording", work + "/page.html"
                subprocess.run([sys.executable, maker, "gpt%d" % nodes, recording], check=True)
                began = time.time()
                subprocess.run([explore, recording, "-o", page], check=True, stdout=subprocess.DEVNULL)
                made = time.time() - began
                driver.get("file://" + page)
                while not driver.execute_script("return !!(window.explorer && explorer.ready)"):
                    time.sleep(0.05)
                print("%-8d page: %.2f MB, made in %.2f s, loaded in %.2f s" %
                      (nodes, pathlib.Path(page).stat().st_size / 1e6, made, driver.execute_script("return explorer.loadedIn") / 1e3))
                for name, before, what in LOOKS:
                    driver.execute_script(before)
                    time.sleep(0.4)
                    median, worst, boxes, edges = driver.execute_async_script(EVENTS % what)
                    print("%-8d %-24s %12.1f %12.1f %8d %8d" % (nodes, name, median, worst, boxes, edges))
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
