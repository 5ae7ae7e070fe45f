#!/usr/bin/env python3
"""Compares the declarations of Ramet's public functions and methods with LibTorch's: for each name that both have, each of LibTorch's
overloads must be declared here with the same types in the same order, and the same defaults.

  tools/compare/signatures.py --torch PATH     PATH: the folder "torch" of an installed PyTorch (it holds include/)

Overloads that Ramet leaves out on purpose stand in LEFT_OUT with the reason, and are counted. It fails on one that is neither declared
nor left out, and on an entry of LEFT_OUT that matches nothing.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# (what stands in an overload's text, why)
LEFT_OUT = [
    ("List<optional<Tensor>>", "index lists are lists of TensorIndex, or vectors of optional tensors: the same braces fit"),
    ("ScalarType out_dtype", "products of another dtype than their operands'"),
    ("string reduce", "scatter with a reduction, deprecated in LibTorch: scatter_add"),
    ("string padding", "a template that takes everything convertible to a string, so that a literal 0 is a number"),
]


def split(text):
    """The parts between commas that stand in no bracket."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p.strip() for p in parts + [part] if p.strip()]


def normal(parameters):
    """Parameters without qualified names and references, 'type name=default' each."""
    result = []
    for p in split(parameters):
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


def spelled_out():
    """{header: its declarations} of autograd/ops.h and what it includes, as the compiler sees them: each on a line of its own, lists
    of operations (*.inc) spelled out where they are included, without comments and the library's own namespaces."""
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-x", "c++", "-E", "-I.", "-"]
    run = subprocess.run(command, cwd=ROOT, input='#include "autograd/ops.h"\n', capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit("%s\n%s" % (" ".join(command), run.stderr))
    found, header = {}, ""
    for line in run.stdout.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker and not marker.group(1).endswith(".inc"):
            header = os.path.normpath(marker.group(1))
        elif not marker and header.startswith("autograd/"):
            found.setdefault(header, []).append(line)
    return {header: one_a_line(" ".join(lines)) for header, lines in found.items()}


def one_a_line(text):
    text = re.sub(r"__attribute__\(\(visibility\(.default.\)\)\)", "RAMET_API", re.sub(r"\s+", " ", text))
    text = re.sub(r"\b(\w+) \(", r"\1(", text)
    lines, private, depth = [], None, 0
    for line in re.sub(r" ?(;|\{(?! ?\})|(?<!\{)\}|\b(?:public|private):) ?", r"\1\n", text).splitlines():
        if private is None and re.match(r"namespace (?:autograd|detail)\{", line):
            private = depth
        depth += line.count("{") - line.count("}")
        if private is None:
            lines.append(line)
        elif depth == private:
            private = None
    return "\n".join(lines) + "\n"


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
    headers = spelled_out()
    tensor = headers["autograd/tensor.h"]
    tensor = tensor[tensor.index("class RAMET_API Tensor") : tensor.index("Tensor shallow()")]
    methods = declarations(tensor, rf"(?m)^(?:const )?{RESULT} ?(?:& ?)?(\w+)\(")
    functions = {}
    for path, text in sorted(headers.items()):
        if path.startswith("autograd/ops/"):
            for name, overloads in declarations(text, rf"(?m)^(?:RAMET_API|inline) +{RESULT} ?(\w+)\(").items():
                functions.setdefault(name, []).extend(overloads)
    return methods, functions


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


def declared(overload, mine):
    """Whether one of the overloads `mine` takes the same types, with the same defaults."""
    return [(k, d) for k, _, d in overload] in [[(k, d) for k, _, d in o] for o in mine]


def left_out(torch):
    """{what stands in an overload's text: the names that both have and whose overloads with it are left out}"""
    (our_methods, our_functions), found = ours(), {}
    their_methods, their_functions = theirs(torch, our_functions)
    for mine, other in ((our_methods, their_methods), (our_functions, their_functions)):
        for name in set(mine) & set(other):
            for overload in (o for o in other[name] if not foreign(o) and not declared(o, mine[name])):
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
                if declared(overload, mine[name]):
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
