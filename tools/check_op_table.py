#!/usr/bin/env python3
"""Checks that every public function returning tensors has a row in the operation table
(tests/autograd/op_table_*_test.cc), and every in-place and out form a place in one.

What has none is listed below and counted, as are the dtypes that LibTorch takes and Ramet does not. It fails on a
function that is neither in the table nor in the list, on a name in a list that has a row by now or is no function, and on
a row that names no function.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ROOT / "autograd" / "ops"
TABLE = ROOT / "tests" / "autograd"

# Functions without a row.
GAPS = set()
# In-place methods, in-place functions and out forms without a place in a row.
FORM_GAPS = set()


def sources():
    return {path.name: path.read_text() for path in sorted(TABLE.glob("op_table_*_test.cc"))}


def functions():
    """Public functions returning tensors, with the header of each; not those that write into `out` or in place."""
    found = {}
    for path in sorted(HEADERS.glob("*.h")):
        if path.name in ("common.h", "composed.h") or path.name.endswith("_front.h"):
            continue
        text = re.sub(r"//[^\n]*", "", path.read_text())
        # Inside namespaces `autograd` and `detail` are the library's own.
        text = re.sub(r"^namespace (?:autograd|detail) \{.*?^\}", "", text, flags=re.S | re.M)
        kinds = r"(?:Tensor|std::vector<Tensor>|std::tuple<[^>]*>)"
        for name in re.findall(rf"\bRAMET_API\s+{kinds}\s+(\w+)\s*\(", text):
            if name != "name":  # a macro's parameter
                found[name] = path.name
        for macro, body in re.findall(r"#define\s+(RAMET_\w+)\(name\)((?:[^\n]*\\\n)*[^\n]*)", text):
            if re.search(r"\bTensor name\b", body):
                for name in re.findall(rf"^{macro}\((\w+)\)", text, flags=re.M):
                    found[name] = path.name
    return found


def forms():
    """In-place methods and functions (name_) and out forms (name_out)."""
    found = set()
    for path in [*HEADERS.glob("*.h"), HEADERS.parent / "tensor.h"]:
        text = re.sub(r"//[^\n]*", "", path.read_text())
        found |= set(re.findall(r"^(?:RAMET_API )?\s*(?:const )?Tensor& (\w+(?:_out|_))\s*\(", text, flags=re.M))
        for name in re.findall(r"^RAMET_COMPARE\((\w+)\)", text, flags=re.M):
            found.add(name + "_out")
        for name in re.findall(r"^\s*RAMET_UNARY_METHOD\((\w+)\)", text, flags=re.M):
            found.add(name + "_")
    return found


def row_names(text):
    # A row's name is the first argument of what makes the row.
    names = re.findall(r"[({]\s*\"([a-z_0-9]+)(?:\.[a-z_0-9]+)?\"\s*,", text)
    names += re.findall(r"\b(?:UNARY|COMPARE)\((\w+),", text)
    # Draws without moments are tests of their own.
    names += [name.lower() for name in re.findall(r"\bTEST\(RandomRows, (\w+)\)", text) if name == name.capitalize()]
    return set(names) - {"name"}


def form_names(text):
    names = set(re.findall(r"\b(\w+(?:_out|_))\(", text))
    names |= {name + "_" for name in re.findall(r"\bUNARY\((\w+),", text)}
    names |= {name + "_out" for name in re.findall(r"\bCOMPARE\((\w+),", text)}
    return names


def compare(what, wanted, have, gaps, errors):
    for name in sorted(set(wanted) - have - gaps):
        errors.append(f"{name}: {what} without a row in tests/autograd/op_table_*_test.cc")
    for name in sorted(gaps & have):
        errors.append(f"{name} has a row: take it off the list in this script")
    for name in sorted(gaps - set(wanted)):
        errors.append(f"{name} is in the list, but no {what}")


def main():
    text = "".join(sources().values())
    public, rows, errors = functions(), row_names(text), []
    in_place = forms()
    compare("public function", public, rows, GAPS, errors)
    compare("in-place or out form", in_place, form_names(text) & in_place, FORM_GAPS, errors)
    for name in sorted(rows - set(public)):
        errors.append(f"a row names {name}, which is no public function")
    for error in errors:
        print(error)
    print(
        f"operation table: {len(set(public) & rows)} of {len(public)} functions have a row;"
        f" {len(GAPS)} gaps: {' '.join(sorted(GAPS))}"
    )
    print(f"in-place and out forms: {len(in_place - FORM_GAPS)} of {len(in_place)}; gaps: {' '.join(sorted(FORM_GAPS))}")
    lacking = re.findall(r"\"([a-z_0-9.]+)\"(?:(?!\"[a-z_0-9.]+\",).)*?\.lacks\((\w+)\)", text, flags=re.S)
    print(f"dtypes LibTorch takes and Ramet does not: {', '.join(f'{n} ({s})' for n, s in lacking) or 'none'}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
