#!/usr/bin/env python3
"""Writes the code of every operation's value and gradient as a C++ table, for the explorer's page.

    formulas.py FILE...    prints the table; of FILEs it reads kernels/pointwise/rows/*.h and autograd/ops/*/*.cc

A row's struct is named after its node: Relu makes ReluBackward0. A front names its node where it records it.
"""

import pathlib
import re
import sys

MOST = 2400  # characters of one piece of code


def closed(text, start, opening, closing):
    """The end of what begins at `start` with `opening`, strings and comments passed over; -1 where nothing closes it."""
    depth, i = 0, start
    while i < len(text):
        if text.startswith("//", i):
            i = text.find("\n", i)
            if i < 0:
                return -1
        elif text[i] == '"':
            i += 1
            while i < len(text) and text[i] != '"':
                i += 2 if text[i] == "\\" else 1
        elif text[i] == opening:
            depth += 1
        elif text[i] == closing:
            depth -= 1
            if depth == 0:
                return i + 1
        i += 1
    return -1


def shifted(code):
    """Without what all lines but the first have before them."""
    lines = code.split("\n")
    rest = [line for line in lines[1:] if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in rest), default=0)
    lines = [lines[0]] + [line[min(indent, len(line) - len(line.lstrip())):] for line in lines[1:]]
    code = "\n".join(lines)
    return code if len(code) <= MOST else code[:MOST].rsplit("\n", 1)[0] + "\n// ..."


def rows_of(name, text):
    for match in re.finditer(r"((?:^///?[^\n]*\n)*)^struct (\w+) : [\w:]+ \{", text, re.M):
        end = closed(text, match.end() - 1, "{", "}")
        if end < 0:
            continue
        body = text[match.start():end]
        node = re.search(r'kNode = "(\w+)"', body)
        line = text.count("\n", 0, match.start(2)) + 1
        body = re.sub(r"RAMET_FORMULA ", "", re.sub(r"RAMET_GRADIENT ", "", body))
        body = "\n".join(s for s in body.split("\n") if "static constexpr" not in s)
        yield node.group(1) if node else match.group(2) + "Backward", name + ":" + str(line), body + ";"


def records_of(name, text):
    """record("NameBackward0", ...); where the name comes in a variable, what is called with it."""
    for match in re.finditer(r'"(\w+Backward\d?)"', text):
        line_start = text.rfind("\n", 0, match.start()) + 1
        start = max(text.rfind("record(", 0, match.start()), text.rfind("record_inplace(", 0, match.start()))
        call = text[start:closed(text, text.find("(", start), "(", ")")] if start >= 0 else ""
        if match.group(0) not in call:
            # The function around it.
            start = text.rfind("\n}", 0, match.start()) + 2
            end = text.find("\n}", match.start())
            call = text[start:end + 2].strip("\n") if end > 0 else text[line_start:text.find("\n", match.start())]
            call = re.sub(r"^\s*// (namespace|----).*\n+", "", call) + helper(text, match.start())
        yield match.group(1), name + ":" + str(text.count("\n", 0, match.start()) + 1), call


def helper(text, place):
    """The function of the same file that gets a node's name, where there is one."""
    called = re.search(r"(\w+)\((?:\"\w+\", )?$", text[max(0, place - 80):place])
    found = called and re.search(r"^[\w:<>&*, ]+ %s\(const char\* " % called.group(1), text, re.M)
    end = text.find("\n}", found.start()) if found else -1
    return "\n\n" + text[found.start():end + 2] if end > 0 else ""


def quoted(text):
    return 'R"~(' + text.replace(')~"', ') ~"') + ')~"'


def main():
    found = {}
    for name in sorted(sys.argv[1:]):
        if not re.search(r"kernels/pointwise/rows/\w+\.h$|autograd/ops/\w+/\w+\.cc$", name):
            continue
        text = pathlib.Path(name).read_text(encoding="utf-8")
        short = name[max(name.find("kernels/pointwise/rows"), name.find("autograd/ops/")):]
        for node, where, code in (rows_of if "/rows/" in name else records_of)(short, text):
            key = node
            if key not in found or len(found[key][1]) < 40:
                found[key] = (where, shifted(code))
    print("// Written by tools/docs/explorer/formulas.py.\n#include \"tools/see/explorer/page.h\"\n")
    print("namespace ramet {\nnamespace see {\nnamespace detail {\n\nconst FormulaRow kFormulas[] = {")
    for node in sorted(found):
        where, code = found[node]
        print("    {%s, %s, %s}," % (quoted(node), quoted(where), quoted(code)))
    print("};\nconst size_t kFormulaCount = sizeof kFormulas / sizeof kFormulas[0];\n")
    print("}  // namespace detail\n}  // namespace see\n}  // namespace ramet")


if __name__ == "__main__":
    main()
