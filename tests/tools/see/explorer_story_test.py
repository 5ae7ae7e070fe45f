#!/usr/bin/env python3
"""The explorer's story in a real browser: what its sentences and inputs name.

    explorer_story_test.py EXPLORE MAKE_RECORDING

Skipped, with the reason, where chromium, its driver or python3-selenium is missing.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
from explorer_pages import check, data_of, page, put, run  # noqa: E402


def test_sentences_name_modules(p):
    data = data_of("cnn2")
    p.open(page("cnn2"))
    named = 0
    for i, e in enumerate(p.js("return explorer.events.list.map((e, i) => ({...e, said: explorer.events.describe(i)}))")):
        op = e.get("operation", -1) if e["kind"].startswith("op_") else data["nodes"][e["node"]]["operation"] if e["kind"] == "begin" else -1
        module = data["operations"][op]["module"] if op >= 0 else -1
        if module >= 0 and data["modules"][module]["path"]:
            named += 1
            check(" of %s " % data["modules"][module]["path"] in e["said"], (i, e["said"]))
    check(named > 40, named)


def test_inputs_name_parameters(p):
    """Also those of the second replica, whose copy of a parameter has no name in the recording."""
    data = data_of("cnn2")
    for o in data["operations"]:
        for t in o["inputs"]:
            if t >= 0:
                data["tensors"][t]["name"] = ""
    p.open(page(put("unnamed.rec", data)))
    convolutions = [o for o in data["operations"] if o["name"].startswith("conv")]
    check({o["device"] for o in convolutions} == {0, 1}, convolutions)
    for o in convolutions:
        path = data["modules"][o["module"]]["path"]
        p.js("explorer.showNode(arguments[0])", o["node"])
        p.frame()
        inputs = p.text("#panel").split("Inputs")[1].split("Result")[0]
        check(path + ".weight" in inputs and path + ".bias" in inputs, (path, o["device"], inputs))


if __name__ == "__main__":
    run(globals())
