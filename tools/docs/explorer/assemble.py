#!/usr/bin/env python3
"""Puts the explorer's page together: one file of HTML with its style, its scripts and the parts of d3 that they use.

    assemble.py --d3 FOLDER --licence FILE PAGE STYLE... SCRIPT...    prints it as a C++ string (tools/see/explorer/page.h)
    assemble.py --html ...                                            prints the page itself

FOLDER is the modules' folder of Debian's node-d3 packages, FILE their licence. Scripts come in the order in which they are given, as one.
"""

import argparse
import pathlib
import re

def page(arguments):
    read = lambda path: pathlib.Path(path).read_text(encoding="utf-8")
    styles = "\n".join(read(f) for f in arguments.files if f.endswith(".css"))
    d3 = [f for f in arguments.files if f.endswith(".min.js")]
    scripts = "\n".join(read(f) for f in arguments.files if f.endswith(".js") and f not in d3)
    d3 = "\n".join(read(f).strip() for f in d3)
    assert "</script" not in scripts + d3 and "</style" not in styles
    licence = read(arguments.licence)
    licence = licence[licence.find("License: BSD-3-clause\n Redistribution"):].replace("*/", "* /")
    parts = {"STYLE": styles, "D3": "/* d3 (d3js.org), Copyright Mike Bostock.\n" + licence.rstrip() + "\n*/\n" + d3,
             "SCRIPT": "(() => {\n'use strict';\n" + scripts + "\n})();"}
    html = next(read(f) for f in arguments.files if f.endswith(".html"))
    return re.sub(r"/\*@(\w+)@\*/", lambda m: parts[m.group(1)], html)


def as_source(text):
    data = text.encode("utf-8")
    out = ["// Written by tools/docs/explorer/assemble.py.", '#include "tools/see/explorer/page.h"', "",
           "namespace ramet {", "namespace see {", "namespace detail {", "", "namespace {", "constexpr char kText[] = {"]
    for i in range(0, len(data), 40):
        out.append(",".join(str(b if b < 128 else b - 256) for b in data[i:i + 40]) + ",")
    out += ["};", "}  // namespace", "const std::string_view kPage(kText, sizeof kText);", "",
            "}  // namespace detail", "}  // namespace see", "}  // namespace ramet", ""]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--licence", required=True)
    parser.add_argument("--html", action="store_true")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    text = page(arguments)
    print(text if arguments.html else as_source(text), end="")


if __name__ == "__main__":
    main()
