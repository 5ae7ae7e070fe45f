#!/usr/bin/env python3
"""Puts the explorer's page together: one file of HTML with its style, its scripts and the parts of d3 that they use.

    assemble.py --licence FILE page.html STYLE... SCRIPT...    prints it as a C++ string (tools/see/explorer/page.h)
    assemble.py --html ...                                     prints the page itself

FILE is d3's licence. Where each file goes, and in which order, is in page.html: /*@ one.js another.js @*/ (a build may give them in
any).
"""

import argparse
import pathlib
import re


def page(arguments):
    read = lambda path: pathlib.Path(path).read_text(encoding="utf-8")
    files = {pathlib.Path(f).name: read(f) for f in arguments.files}
    html = files.pop("page.html")
    licence = read(arguments.licence)
    licence = licence[licence.find("License: BSD-3-clause\n Redistribution"):].replace("*/", "* /")

    def part(match):
        names = match.group(1).split()
        text = "\n".join(files.pop(name).strip() for name in names)
        assert "</script" not in text and "</style" not in text
        if names[0].startswith("d3-"):
            return "/* d3 (d3js.org), Copyright Mike Bostock.\n" + licence.rstrip() + "\n*/\n" + text
        return "(() => {\n'use strict';\n" + text + "\n})();" if names[0].endswith(".js") else text

    html = re.sub(r"/\*@ (.*?) @\*/", part, html)
    if files:
        raise SystemExit("assemble: page.html does not name " + ", ".join(sorted(files)))
    return html


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
