"""The lists of pointwise operations (kernels/pointwise/lists.h), for tools that read declarations."""

import pathlib
import re

LISTS = pathlib.Path(__file__).resolve().parent.parent.parent / "kernels" / "pointwise" / "lists.h"


def read():
    """{list: its entries, each the arguments of its X}"""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", LISTS.read_text())
    bodies = dict(re.findall(r"#define (RAMET_\w+)\(X\)((?:[^\n]*\\\n)*[^\n]*)", text))

    def entries(name):
        found = []
        for inner, arguments in re.findall(r"\b(X|RAMET_\w+)\(([^()]*)\)", bodies[name]):
            found += [[a.strip() for a in arguments.split(",")]] if inner == "X" else entries(inner)
        return found

    return {name: entries(name) for name in bodies}


def spell_out(text):
    """C++ text with LIST(MACRO) written as MACRO(...) for each entry, a line each."""
    lists = read()

    def lines(match):
        if match.group(1) not in lists:
            return match.group()
        return "\n".join("%s(%s)" % (match.group(2), ", ".join(entry)) for entry in lists[match.group(1)])

    return re.sub(r"\b(RAMET_\w+)\((\w+)\)", lines, text)


def macros(text):
    """C++ text with macros whose first parameter is a name spelled out, others dropped; comments are gone."""
    text = spell_out(re.sub(r"//[^\n]*", "", text))
    defined = re.findall(r"#define\s+(\w+)\(name\b[^)]*\)((?:[^\n]*\\\n)*[^\n]*)", text)
    text = re.sub(r"#define(?:[^\n]*\\\n)*[^\n]*", "", text)
    for _ in range(2):  # a macro may use one that stands before it
        for macro, body in reversed(defined):
            body = body.replace("\\\n", "\n")
            text = re.sub(
                rf"^([ \t]*){macro}\((\w+)[^()\n]*\);?",
                lambda m: re.sub(r"#?\bname\b(?:##)?", lambda n: '"%s"' % m.group(2) if n.group()[0] == "#" else m.group(2), body),
                text,
                flags=re.M,
            )
    return text
