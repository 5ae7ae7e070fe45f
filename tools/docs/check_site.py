#!/usr/bin/env python3
"""Checks a folder of pages: every link leads to a page, and a place in it, that is there; nothing comes from a network.

    tools/docs/check_site.py FOLDER
"""

import html
import pathlib
import re
import sys
import urllib.parse

LINK = re.compile(r"""<(?:a|link|script|img|iframe)\b[^>]*?\s(?:href|src)=["']([^"']*)["']""")
REMOTE = re.compile(r"""<(?:link|script|img|iframe)\b[^>]*?\s(?:href|src)=["'](?:https?:)?//|(?:url\(|@import)\s*["']?(?:https?:)?//""")
PLACE = re.compile(r"""\s(?:id|name)=["']([^"']*)["']""")


def problems(site):
    found, places, links = [], {}, []
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(errors="replace")
        places[page] = {html.unescape(p) for p in PLACE.findall(text)}
        links.append((page, {html.unescape(l) for l in LINK.findall(text)}))
        if REMOTE.search(text):
            found.append("%s: needs a network" % page.relative_to(site))
    for page, targets in links:
        for target in sorted(targets):
            if re.match(r"(https?|mailto|javascript|data):", target):
                continue
            path, _, place = urllib.parse.unquote(target).partition("#")
            other = (page.parent / path.partition("?")[0]).resolve() if path else page.resolve()
            if not other.is_file():
                found.append("%s: %s is not there" % (page.relative_to(site), target))
            elif place and other.suffix == ".html" and place not in places.get(other, ()):
                found.append("%s: %s has no such place" % (page.relative_to(site), target))
    return found


if __name__ == "__main__":
    bad = problems(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(bad + ["links: %d problems" % len(bad)]))
    sys.exit(1 if bad else 0)
