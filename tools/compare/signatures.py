#!/usr/bin/env python3
"""Compares the declarations of Ramet's public functions and methods with LibTorch's: for each name that both have, each of LibTorch's
overloads must be declared here with the same types in the same order, and the same defaults.

  tools/compare/signatures.py --torch PATH     PATH: the folder "torch" of an installed PyTorch (it holds include/)

Overloads that Ramet leaves out on purpose stand in LEFT_OUT with the reason, and are counted. It fails on one that is neither declared
nor left out, and on an entry of LEFT_OUT that matches nothing.
"""

import argparse
import functools
import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools/compat"))
import cxx  # noqa: E402

# (what stands in an overload's text, why)
LEFT_OUT = [
    ("List<optional<Tensor>>", "index lists are lists of TensorIndex, or vectors of optional tensors: the same braces fit"),
    ("ScalarType out_dtype", "products of another dtype than their operands'"),
    ("string reduce", "scatter with a reduction, deprecated in LibTorch: scatter_add"),
    ("string padding", "a template that takes everything convertible to a string, so that a literal 0 is a number"),
]


def normal(parameters):
    """Parameters without qualified names and references, 'type name=default' each."""
    result = []
    for p in cxx.split(parameters):
        p = re.sub(r"(?:::)?\b(?:at|c10|std|ramet|autograd|indexing)::", "", p)
        p = re.sub(r"\bnullopt_t\b|\bconst\b|&", "", p)
        p, _, default = p.partition("=")
        words = p.split()
        kind, name = " ".join(words[:-1]).replace(" ", ""), words[-1]
        if "<" in name or not kind:
            kind, name = p.replace(" ", ""), ""
        kind = {"bool": "bool", "ITensorListRef": "TensorList", "ArrayRef<Tensor>": "TensorList", "string_view": "string"}.get(kind, kind)
        kind = kind.replace("string_view", "string").replace("ArrayRef<int64_t>", "IntArrayRef").replace("optional<IntArrayRef>", "OptionalIntArrayRef")
        default = re.sub(r"\s|^::|\w+::", "", default)
        if default == "{}" and kind.startswith("optional"):
            default = "nullopt"
        result.append((kind, name, default))
    return result


def code(text):
    return re.sub(r"//[^\n]*", "", text)


@functools.lru_cache(maxsize=None)
def declared():
    """(methods of Tensor, functions of autograd/ops/) as entries of cxx.py."""
    classes = ("ramet::Tensor", "ramet::TensorBase")
    wanted = lambda path: path.startswith(("autograd/", "runtime/tensor/tensor_base.h"))
    found = cxx.Reader(cxx.preprocessed(["autograd/ops.h"], ROOT, wanted=wanted), inside=classes.__contains__).entries
    found = [e for e in found if e.kind == "function" and e.public and re.fullmatch(r"(?!operator\b)\w+", e.name)]
    functions = [e for e in found if e.owner is None and e.header.startswith("autograd/ops/") and "::autograd" not in e.scope]
    return [e for e in found if e.owner is not None and e.name != e.owner.name], functions


def declarations(text, pattern):
    found = {}
    for m in re.finditer(pattern, text):
        depth, end = 1, m.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        found.setdefault(m.group(1), []).append(normal(" ".join(text[m.end() : end - 1].split())))
    return found


RESULT = r"(?:(?:::)?(?:at::)?Tensor ?&?|(?:::)?std::vector<(?:at::)?Tensor>|(?:::)?(?:std::)?tuple<[^;(]*?>|bool|Scalar|at::Scalar|int64_t|void|(?:at::)?ScalarType)"


def ours():
    """({name: overloads} of methods, the same of functions) that return tensors, numbers or nothing."""
    result = ({}, {})
    for found, entries in zip(result, declared()):
        for entry in (e for e in entries if e.owner is None or e.owner.name == "Tensor"):
            kind, parameters, _ = entry.pieces()
            if not entry.template and re.fullmatch(rf"(?:inline |const )?{RESULT} ?&?", kind):
                found.setdefault(entry.name, []).append(normal(parameters))
    return result


def theirs(torch, functions):
    body = code((torch / "include/ATen/core/TensorBody.h").read_text())
    methods = declarations(body, rf"(?m)^  (?:const )?{RESULT} ?(?:& ?)?(\w+)\((?=[^;]*\) const)")
    found = {}
    headers = {f"ops/{h}.h" for name in functions for h in (re.sub(r"_out$|(?<=\w)_$", "", name), name)}
    headers.add("Functions.h")  # written by hand beside the generated ones: an int for the dimension of var_mean
    for path in (torch / "include/ATen" / header for header in sorted(headers)):
        if path.exists():
            for n, overloads in declarations(code(path.read_text()), rf"(?m)^inline {RESULT} (\w+)\(").items():
                found.setdefault(n, []).extend(overloads)
    return methods, found


def foreign(overload):
    return any(re.search(r"Dimname|SymInt|Layout|Storage|QScheme|Stream", kind) for kind, _, _ in overload)


def text(name, overload):
    return f"{name}({', '.join(f'{k} {n}' + (f' = {d}' if d else '') for k, n, d in overload)})"


def has(mine, overload):
    """Whether one of the overloads `mine` takes the same types, with the same defaults."""
    return [(k, d) for k, _, d in overload] in [[(k, d) for k, _, d in o] for o in mine]


def left_out(torch):
    """{what stands in an overload's text: the names that both have and whose overloads with it are left out}"""
    (our_methods, our_functions), found = ours(), {}
    their_methods, their_functions = theirs(torch, our_functions)
    for mine, other in ((our_methods, their_methods), (our_functions, their_functions)):
        for name in set(mine) & set(other):
            for overload in (o for o in other[name] if not foreign(o) and not has(mine[name], o)):
                out = next((what for what, _ in LEFT_OUT if what in text(name, overload)), None)
                if out:
                    found.setdefault(out, set()).add(name)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--torch", required=True, type=pathlib.Path)
    torch = parser.parse_args().torch
    our_methods, our_functions = ours()
    their_methods, their_functions = theirs(torch, our_functions)
    compared, left = 0, {what: 0 for what, _ in LEFT_OUT}
    problems = []
    for kind, mine, other in (("method", our_methods, their_methods), ("function", our_functions, their_functions)):
        for name in sorted(set(mine) & set(other)):
            for overload in [o for i, o in enumerate(other[name]) if o not in other[name][:i]]:
                if foreign(overload):
                    continue
                compared += 1
                if has(mine[name], overload):
                    continue
                out = next((what for what, _ in LEFT_OUT if what in text(name, overload)), None)
                if out:
                    left[out] += 1
                else:
                    problems.append(f"{kind} {text(name, overload)}\n    here: " + "; ".join(text("", o) for o in mine[name]))
    problems += [f"LEFT_OUT names {what!r}, which no overload has" for what, n in left.items() if not n]
    for p in problems:
        print(p)
    for what, why in LEFT_OUT:
        print(f"left out: {left[what]} with {what}: {why}")
    print(f"{compared} overloads of LibTorch compared, {sum(left.values())} left out, {len(problems)} differ")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
