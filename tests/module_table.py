#!/usr/bin/env python3
"""The table of modules, tests/modules, for C++ and for Python. Its table.txt says how a row is written.

usage: module_table.py FOLDER   (prints the rows of C++ that tests/modules.cc includes)
"""

import ast
import collections
import fnmatch
import json
import pathlib
import re
import sys

# An input of a row of the matrix: `by` multiplies the goldens' numbers, `golden` gives them.
Input = collections.namedtuple("Input", "kind sizes below by golden")
DRAWS = {
    "real": lambda *sizes, by=1: Input("Real", sizes, 0, by, None),
    "positive": lambda *sizes: Input("Positive", sizes, 0, 1, None),
    "signs": lambda *sizes, golden=None: Input("Sign", sizes, 0, 1, golden),
    "index": lambda below, *sizes, golden=None: Input("Index", sizes, below, 1, golden),
}
# How C++ writes what is not the capitalized word.
WORDS = {"relu": "kReLU", "gelu": "kGELU", "batchmean": "kBatchMean"}
VALUES = {"true": "true", "false": "false", "null": "std::nullopt"}
DICTS = {"ModuleDict": "dict_of_modules", "ParameterDict": "dict_of_parameters"}
# The lists that are vectors, of options that may be absent.
VECTORS = {"scale_factor": "std::vector<double>", "size": "std::vector<int64_t>"}


class TableError(Exception):
    pass


class Example:
    """A module with what it is used for: None where a row has not that use."""

    def __init__(self, text):
        self.text, self.call = text, ast.parse(text, mode="eval").body
        self.type = self.call.func.id
        self.matrix = self.c = self.onnx = self.prints = None
        self.lacks = []  # (name of a Check, reason)

    def source(self, node):
        return ast.get_source_segment(self.text, node)

    def use(self, text, lets, file):
        """Takes one use of the row, which is in `file`."""
        kind, _, rest = lets.get(text, text).partition(" ")
        word = re.match(r'"([^"]*)" ', rest)
        rest = rest[word.end() :] if word else rest
        if kind == "matrix":
            name = self.type + (" " + word[1] if word else "")
            self.matrix = (name, file, eval(lets.get(rest, rest), dict(DRAWS)))
        elif kind == "not":
            checks, _, reason = rest.partition(": ")
            self.lacks += [(check, reason) for check in checks.split()]
        elif kind == "c":
            self.c = rest
        elif kind == "onnx":
            name = self.type if not word else self.type + word[1] if word[1].startswith("_") else word[1]
            self.onnx = (name, rest.removeprefix("any_batch ").split(", "), rest.startswith("any_batch "))
        elif kind == "prints":
            self.prints = rest.replace("nn::", "torch::nn::")
        else:
            raise TableError("no use of a module: " + text)


def alternatives(line):
    """{a|b} in a line stands for two lines; all braces of a line go together."""
    groups = [g[1:-1].split("|") for g in re.findall(r"\{[^{}]*\|[^{}]*\}", line)]
    made = []
    for choice in zip(*groups) if groups else [()]:
        words = iter(choice)
        made.append(re.sub(r"\{[^{}]*\|[^{}]*\}", lambda _: next(words), line))
    return made


class Table:
    def __init__(self, text):
        self.examples, self.names, self.lets, self.not_in_c, self.file = [], {}, {}, [], None
        rows = []
        for line in text.splitlines():
            if line.startswith("|"):  # the printed text goes on
                rows[-1] += "\n" + line[1:]
            elif line.startswith("    "):
                rows[-1] += (" " if rows[-1].endswith("->") else " ; ") + line.strip()
            elif line and not line.startswith("#"):
                rows += alternatives(line)
        for row in rows:
            try:
                self.add(row)
            except (TableError, SyntaxError, NameError, TypeError) as e:
                raise TableError("tests/modules: %s: %s" % (row, e))
        self.check()

    def add(self, row):
        kind, _, rest = row.partition(" ")
        if kind == "let":
            name, _, text = rest.partition(" = ")
            self.lets[name] = text
        elif kind == "file":
            self.file = rest
        elif kind == "names":
            types, _, names = rest.partition(": ")
            self.names |= dict.fromkeys(types.split(), names.split())
        elif kind == "not_in_c":
            self.not_in_c += rest.partition(": ")[2].split()
        else:
            text, _, uses = row.partition(" -> ")
            example = Example(text)
            prints = re.search(r"(?:^| ; )(prints .*)", uses, flags=re.S)
            parts = uses[: prints.start()].split(" ; ") if prints else uses.split(" ; ")
            for use in [part for part in parts if part] + ([prints[1]] if prints else []):
                example.use(use, self.lets, self.file)
            self.examples.append(example)

    def check(self):
        """Every module has a row of the matrix, and a row of C's interface or a reason."""
        for what, given in (
            ("a module", [e.text for e in self.examples]),
            ("a row of the matrix", [e.matrix[0] for e in self.examples if e.matrix]),
            ("an ONNX model", [e.onnx[0] for e in self.examples if e.onnx]),
        ):
            twice = [name for name, count in collections.Counter(given).items() if count > 1]
            if twice:
                raise TableError("tests/modules has %s twice: %s" % (what, ", ".join(twice)))
        types = {e.type for e in self.examples}
        in_c = {e.type for e in self.examples if e.c}
        absent = {t for t in types for pattern in self.not_in_c if fnmatch.fnmatchcase(t, pattern)}
        problems = ["no row of the matrix: " + t for t in types - {e.type for e in self.examples if e.matrix}]
        problems += ["no row of C's interface, and not in not_in_c: " + t for t in types - in_c - absent]
        problems += ["in not_in_c, and has a row of C's interface: " + t for t in in_c & absent]
        problems += ["in not_in_c, and no module: " + p for p in self.not_in_c if not fnmatch.filter(types, p)]
        if problems:
            raise TableError("tests/modules: " + "; ".join(sorted(problems)))

    def missing(self, modules):
        """Of the names `modules`, those that no row has."""
        return sorted(set(modules) - {e.type for e in self.examples})

    def parameters(self, type_):
        """The names of a constructor's arguments."""
        return self.names.get(type_, self.names.get(re.sub(r"\dd$", "", type_), []))

    def json(self, e):
        """The module as a description for C."""
        names, call = self.parameters(e.type), e.call
        if call.args and isinstance(call.args[0], ast.Call) and call.args[0].func.id == "Options":
            call = call.args[0]
        if len(call.args) > len(names):
            raise TableError("tests/modules: %s needs the names of its arguments, see `names`" % e.text)
        given = [(name, arg) for name, arg in zip(names, call.args)] + [(k.arg, k.value) for k in call.keywords]
        fields = ['"type": "%s"' % e.type]
        for name, node in given:
            text = "[%s]" % ", ".join(map(e.source, node.args)) if isinstance(node, ast.Call) else e.source(node)
            fields.append('"%s": %s' % (name, text))
        return "{%s}" % ", ".join(fields)


def arguments(e, nodes):
    return ", ".join(cpp(e, node) for node in nodes)


def options(e, call, type_):
    """An expression for a module's options."""
    nested = type_ in ("TransformerEncoder", "TransformerDecoder")
    first = [options(e, call.args[0], call.args[0].func.id)] if nested else []
    listed = ["{%s}" % cpp(e, a) if type_ == "RMSNorm" and isinstance(a, ast.Constant) else cpp(e, a) for a in call.args[len(first) :]]
    text = "%sOptions(%s)" % (type_, ", ".join(first + listed))
    for k in call.keywords:
        value = cpp(e, k.value)
        if k.arg in VECTORS:
            value = "%s{%s}" % (VECTORS[k.arg], value.strip("{}"))
        elif k.arg == "approximate":
            value = e.source(k.value)
        elif k.arg == "norm":
            value = "AnyModule(%s)" % value
        text += ".%s(%s)" % (k.arg, value)
    return text


def cpp(e, node):
    """A value or a module in C++."""
    if isinstance(node, ast.List):
        return "{%s}" % arguments(e, node.elts)
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return WORDS.get(node.value, "k" + node.value.capitalize())
    if isinstance(node, ast.Name):
        return VALUES[node.id]
    if not isinstance(node, ast.Call):
        return e.source(node)
    name, args = node.func.id, node.args
    if name in ("ones", "own"):
        return "%s({%s})" % (name, arguments(e, args))
    if name == "tensor":
        return "tensor(std::vector<float>{%s})" % arguments(e, args)
    if name == "sizes":
        return "std::vector<int64_t>{%s}" % arguments(e, args)
    if name == "Functional":
        return "Functional([](Tensor x) { return ramet::%s(x); })" % args[0].id
    if name in DICTS and node.keywords:
        value = "%s.ptr()" if name == "ModuleDict" else "%s"
        items = ['{"%s", %s}' % (k.arg, value % cpp(e, k.value)) for k in node.keywords]
        return "%s({%s})" % (DICTS[name], ", ".join(items))
    if args and isinstance(args[0], ast.Call) and args[0].func.id == "Options":
        return "%s(%s)" % (name, options(e, args[0], name))
    if node.keywords or any(isinstance(a, ast.List) for a in args) or name in ("TransformerEncoder", "TransformerDecoder"):
        return "%s(%s)" % (name, options(e, node, name))
    return "%s(%s)" % (name, arguments(e, args))


def shaped(text):
    """2x4*3 of numbers up to 3, or a name of onnx_models.cc."""
    size, _, scale = text.partition("*")
    if not size[0].isdigit():
        return '{.kind = Input::kNamed, .name = "%s"}' % text
    return "{.kind = Input::kNumbers, .sizes = {%s}%s}" % (size.replace("x", ", "), ", .scale = " + scale if scale else "")


def row(table, e):
    """The example in C++."""
    fields = ['.type = "%s"' % e.type, ".made = [] { return of(%s); }" % cpp(e, e.call)]
    count = max(len(e.matrix[2]) if e.matrix else 0, len(e.onnx[1]) if e.onnx else 0, 1 if e.c else 0)
    if count:
        fields.append(".call = called<%sImpl, %d>" % (e.type, count))
    if e.matrix:
        listed = ["{Input::k%s, {%s}, %d, %s}" % (i.kind, ", ".join(map(str, i.sizes)), i.below, i.by) for i in e.matrix[2]]
        fields += ['.matrix = "%s"' % e.matrix[0], ".inputs = {%s}" % ", ".join(listed)]
        fields.append(".lacks = {%s}" % ", ".join("{Check::k%s, %s}" % (c, json.dumps(r)) for c, r in e.lacks))
    if e.c:
        size, _, dtype = e.c.partition(" ")
        kind = "Index" if dtype else "Real"
        fields += [".json = %s" % json.dumps(table.json(e)), ".c_input = {Input::k%s, {%s}}" % (kind, size.replace("x", ", "))]
    if e.onnx:
        fields += ['.onnx = "%s"' % e.onnx[0], ".onnx_inputs = {%s}" % ", ".join(map(shaped, e.onnx[1]))]
        fields += [".any_batch = true"] if e.onnx[2] else []
    if e.prints:
        fields.append(".prints = %s" % json.dumps(e.prints))
    return "{%s},\n" % ", ".join(fields)


def text_of(folder=pathlib.Path(__file__).parent / "modules"):
    """The files as one text, with a line before each that names it."""
    text = (folder / "table.txt").read_text()
    names = re.search(r"^files (.*)\n", text, flags=re.M)
    parts = ["file %s\n%s" % (name, (folder / (name + ".txt")).read_text()) for name in names[1].split()]
    return text.replace(names[0], "") + "".join(parts)


def read():
    return Table(text_of())


if __name__ == "__main__":
    table = Table(text_of(pathlib.Path(sys.argv[1])))
    sys.stdout.write("".join(row(table, e) for e in table.examples))
