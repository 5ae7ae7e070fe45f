#!/usr/bin/env python3
"""Checks that every public function returning tensors has a row in the operation table
(tests/autograd/table/op_table_*.cc), and every in-place and out form a place in one; and that the in-place and out forms
that were promised exist, overload by overload. Each file of rows has to be among the operators of TorchScript.

What has none is listed below and counted, as are the dtypes that LibTorch takes and Ramet does not. It fails on a
function that is neither in the table nor in the list, on a name in a list that has a row by now or is no function, and on
a row that names no function. What rows leave out of the checks, each with a reason, is listed and counted as well.
"""

import functools
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools" / "compare"))
import signatures  # noqa: E402

TABLE = ROOT / "tests" / "autograd" / "table"
SIZES = ROOT / "tests" / "autograd" / "fuzz"

# Functions without a row.
GAPS = set()
# In-place methods, in-place functions and out forms without a place in a row.
FORM_GAPS = set()


def files():
    """Of each group op_table_<group>_test.cc, and its parts op_table_<group>_<part>.cc."""
    return sorted(path for path in TABLE.glob("op_table_*.cc") if path.name != "op_table_suite.cc")


@functools.lru_cache(maxsize=None)
def sources():
    """The texts of files(), with their macros and the lists of operations spelled out."""
    return [spelled_out(path) for path in files()]


def spelled_out(path):
    """No other header is included, so that this is quick, and so that their macros stay: those of tests, EXPECT_EQ and so on."""
    text = re.sub(r"(?m)^#include.*", "", path.read_text())
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-x", "c++", "-E", "-P", "-I.", "-"]
    run = subprocess.run(command, cwd=ROOT, input='#include "kernels/pointwise/lists.h"\n' + text, stdout=subprocess.PIPE, check=True, universal_newlines=True)
    return re.sub(r'"\s+"', "", run.stdout)  # neighbouring literals are one


def of_no_group():
    """Files of rows that no test has: parts of groups that there are not."""
    groups = [path.name.removesuffix("test.cc") for path in files() if path.name.endswith("_test.cc")]
    return [path.name for path in files() if not path.name.startswith(tuple(groups))]


# Methods without a function of their name that need no row: they compute nothing, and copies have tests of their own.
NO_OPERATIONS = set("_base contiguous data detach new_empty new_empty_strided new_full new_ones new_zeros pin_memory to".split())


def functions():
    """Public functions and methods returning tensors; not those that write into `out` or in place, and not methods that are
    written down as calls of others."""
    methods, ops = signatures.declared()
    found = {e.name for e in methods if e.pieces()[::2] == ("Tensor", "const") and not e.defined and not e.template}
    kinds = r"Tensor|std::vector<Tensor>|std::tuple<Tensor[^&(]*>"
    return found - NO_OPERATIONS | {e.name for e in ops if re.fullmatch(kinds, e.pieces()[0])}


def signature(parameters):
    """One letter a parameter: T tensor, L list of tensors, S number, D dimensions, d one dimension, o the rest."""
    letters = ""
    for p in signatures.cxx.split(parameters):
        kinds = (("Tensor", "T"), ("TensorList", "L"), ("Scalar", "S"), ("IntArrayRef", "D"), ("OptionalIntArrayRef", "D"))
        words = re.findall(r"\w+", p.split("=")[0])
        letters += next((letter for word, letter in kinds if word in words), "d" if words[:1] == ["int64_t"] else "o")
    return letters


def forms():
    """In-place methods and functions (name_) and out forms (name_out), each with the signatures it has."""
    found = {}
    for entry in sum(signatures.declared(), []):
        result, parameters, _ = entry.pieces()
        if re.fullmatch(r"Tensor&|std::tuple<Tensor&, Tensor&(?:, Tensor&)?>", result) and entry.name.endswith(("_out", "_")):
            found.setdefault(entry.name, set()).add(("method" if entry.owner else "function", signature(parameters)))
    return found


# Functions and methods with integer arguments that need no row of random sizes (tests/autograd/fuzz/fuzz_sizes_*.cc), with
# the reason. Out forms and methods take their functions' numbers.
NO_SIZES = {
    "_unsafe_view": "in the row of view",
    "cross_entropy_loss_consuming": "cross_entropy_loss, over the memory of its input",
    "broadcast_to": "in the row of expand",
    "as_strided_": "in the row of as_strided",
    "concat": "in the row of cat",
    "concatenate": "another name of cat",
    "moveaxis": "in the row of movedim",
    "residual_layer_norm": "in the row of layer_norm",
    "size": "wrapped as every dimension is",
    "swapdims": "another name of transpose",
}


def with_integers():
    """Public functions and methods that take an int64_t or a list of them; not out forms."""
    found = set()
    for declared in signatures.ours():
        for name, overloads in declared.items():
            kinds = [kind for overload in overloads for kind, _, _ in overload]
            if any("int64_t" in kind or "IntArrayRef" in kind for kind in kinds) and not name.endswith("_out"):
                found.add(name)
    return found


def size_rows():
    text = "".join(spelled_out(path) for path in sorted(SIZES.glob("fuzz_sizes_*.cc")))
    return set(re.findall(r"\b(?:ROW|VIEW|COSTLY)\((\w+),", text)) | set(re.findall(r"\{\s*\"(\w+)\",", text))


def without_operators():
    """Files of rows that autograd/schema/rows_*.cc does not include: their functions would be no operators of TorchScript, silently."""
    included = []
    for path in sorted((ROOT / "autograd" / "schema").glob("rows_*.cc")):
        included += re.findall(r'(?m)^#include "(autograd/ops/[^"]+\.inc)"', path.read_text())
    there = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "autograd" / "ops").rglob("*.inc"))
    return [(path, included.count(path)) for path in sorted(set(there) | set(included)) if included.count(path) != 1 or path not in there]


def row_names(text):
    # A row's name is the first argument of what makes the row.
    names = re.findall(r"[({]\s*\"([a-zHT_0-9]+)(?:\.[a-z_0-9]+)?\"\s*,", text)
    # Draws without moments are tests of their own.
    names += [name.lower() for name in re.findall(r"\bTEST\(RandomRows, (\w+)\)", text) if name == name.capitalize()]
    return set(names) - {"name"}


def form_names(text):
    """Those that a row names, and those that the macros of op_calls.h make."""
    names = set(re.findall(r"\b(\w+(?:_out|_))\(", text))
    for macro, name in re.findall(r"\b(\w*(?:IN_PLACE|OUT))\((?:k\w+, )?(\w+),", text):
        names |= {name + "_"} if "IN_PLACE" in macro else set()
        names |= {name + "_out"} if macro.endswith("OUT") else set()
    return names


def promised():
    """The forms that were promised, where LibTorch has them: (name, owner, signature, without defaults)."""
    unary = "neg abs exp log sqrt rsqrt sin cos tanh sigmoid erf relu".split()
    wanted = {(f"{n}_", "method", "") for n in [*unary, "sign", "logical_not"]}
    wanted |= {(f"{n}_", "function", "T") for n in unary}
    wanted |= {(f"{n}_out", "function", "TT") for n in [*unary, "sign", "logical_not"]}
    wanted |= {("gelu_", "function", "To"), ("gelu_out", "function", "TTo")}
    for n in ("add", "sub"):
        wanted |= {(f"{n}_", "method", s) for s in ("TS", "SS")} | {(f"{n}_out", "function", s) for s in ("TTTS", "TTSS")}
    for n in ("mul", "div"):
        wanted |= {(f"{n}_", "method", s) for s in "TS"} | {(f"{n}_out", "function", s) for s in ("TTT", "TTS")}
    wanted |= {("div_", "method", s) for s in ("To", "So")} | {("div_out", "function", s) for s in ("TTTo", "TTSo")}
    wanted |= {("pow_", "method", s) for s in "TS"} | {("pow_out", "function", s) for s in ("TTT", "TTS", "TST")}
    wanted |= {("where_out", "function", "TTTT")}
    wanted |= {("clamp_", "method", s) for s in ("SS", "TT")} | {("clamp_", "function", s) for s in ("TSS", "TTT")}
    wanted |= {("clamp_out", "function", s) for s in ("TTSS", "TTTT")}
    wanted |= {(f"{n}_out", "function", "TTT") for n in ("maximum", "minimum", "logical_and", "logical_or", "logical_xor")}
    for n in ("eq", "ne", "lt", "le", "gt", "ge"):
        wanted |= {(f"{n}_", "method", s) for s in "TS"} | {(f"{n}_out", "function", s) for s in ("TTT", "TTS")}
    wanted |= {(f"{n}_", "method", "T") for n in ("logical_and", "logical_or", "logical_xor")}
    # Reductions have out forms alone.
    wanted |= {(f"{n}_out", "function", s) for n in ("sum", "mean") for s in ("TTo", "TTDoo")}
    wanted |= {("prod_out", "function", s) for s in ("TTo", "TTdoo")}
    wanted |= {(f"{n}_out", "function", s) for n in ("var", "std") for s in ("TTDoo", "TTDSo")}
    wanted |= {(f"{n}_out", "function", s) for n in ("max", "min") for s in ("TT", "TTT", "TTTdo")}
    wanted |= {(f"{n}_out", "function", "TToo") for n in ("argmax", "argmin")}
    wanted |= {("norm_out", "function", s) for s in ("TTS", "TTSo", "TTSDo", "TTSDoo")}
    wanted |= {(f"{n}_out", "function", s) for n in ("any", "all") for s in ("TT", "TTdo", "TTDo")}
    return wanted


# What a row may leave out, with its reason (tests/autograd/table/op_table.h); check_complete() fails on a row that leaves
# something out without one.
EXCEPTIONS = {
    "tame": "no NaN and infinities",
    "partly_tame": "no NaN and infinities in some inputs",
    "not_empty": "no empty sample",
    "not_scalar": "no 0-dim sample",
    "alone": "one thread",
    "in_one": "no slices",
    "slices_from": "no short slices",
}


def exceptions(text):
    """(kind, row, reason) in order; a helper that makes several rows counts once, as "several rows"."""
    found, row = [], None
    kinds = "|".join(EXCEPTIONS)
    pattern = rf'"([a-z_0-9]+(?:\.[a-z_0-9]+)?)"\s*[,\]]|\.({kinds})\((?:\w+,\s*)?"([^"]*)"'
    for name, kind, reason in re.findall(pattern, text):
        if kind:
            found.append((kind, row or "several rows", reason))
        else:
            row = name
    return found


def compare(what, wanted, have, gaps, errors):
    for name in sorted(set(wanted) - have - gaps):
        errors.append(f"{name}: {what} without a row in tests/autograd/table/op_table_*.cc")
    for name in sorted(gaps & have):
        errors.append(f"{name} has a row: take it off the list in this script")
    for name in sorted(gaps - set(wanted)):
        errors.append(f"{name} is in the list, but no {what}")


def main():
    text = "".join(sources())
    public, rows, errors = functions(), row_names(text), []
    in_place = forms()
    compare("public function", public, rows, GAPS, errors)
    compare("in-place or out form", in_place, form_names(text) & set(in_place), FORM_GAPS, errors)
    named = promised()
    for name, owner, letters in sorted(named):
        if (owner, letters) not in in_place.get(name, ()):
            errors.append(f"{name}: promised is a {owner} of signature '{letters}' (letters: see signature())")
    integers, drawn = with_integers(), size_rows()
    for name in sorted(integers - drawn - set(NO_SIZES)):
        # A method that works in place has the numbers of the one that does not.
        if not (name.endswith("_") and name[:-1] in drawn | set(NO_SIZES)):
            errors.append(f"{name} takes integers: it needs a row in tests/autograd/fuzz/fuzz_sizes_*.cc")
    for name in sorted(set(NO_SIZES) & drawn):
        errors.append(f"{name} has a row of random sizes: take it off the list in this script")
    for name in sorted(rows - set(public)):
        errors.append(f"a row names {name}, which is no public function")
    for path, count in without_operators():
        errors.append(f"{path}: autograd/schema/rows_*.cc include it {count} times, expected a file that they include once")
    for name in of_no_group():
        errors.append(f"tests/autograd/table/{name}: a part of no group op_table_<group>_test.cc")
    for error in errors:
        print(error)
    print(
        f"operation table: {len(set(public) & rows)} of {len(public)} functions have a row;"
        f" {len(GAPS)} gaps: {' '.join(sorted(GAPS))}"
    )
    overloads = sum(len(each) for each in in_place.values())
    print(
        f"in-place and out forms: {len(set(in_place) - FORM_GAPS)} of {len(in_place)} ({overloads} overloads);"
        f" gaps: {' '.join(sorted(FORM_GAPS))}"
    )
    print(f"in-place and out forms that were promised: {len(named)}")
    print(f"random sizes: {len(integers & drawn)} of {len(integers)} functions with integer arguments have a row of their own")
    excused = [each for source in sources() for each in exceptions(source)]
    counts = ", ".join(f"{sum(e[0] == k for e in excused)} {what}" for k, what in EXCEPTIONS.items())
    print(f"what rows leave out, with a reason: {counts}")
    for kind, row, reason in excused:
        print(f"  {row}: {EXCEPTIONS[kind]}: {reason}")
    lacking = re.findall(r"\"([a-z_0-9.]+)\"(?:(?!\"[a-z_0-9.]+\",).)*?\.lacks\((\w+)\)", text, flags=re.S)
    print(f"dtypes LibTorch takes and Ramet does not: {', '.join(f'{n} ({s})' for n, s in lacking) or 'none'}")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
