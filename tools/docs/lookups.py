"""What the pages say of a name in addition to its contract: its counterpart in LibTorch, what differs, which programs use it."""

import collections
import importlib.machinery
import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools/compat"), str(ROOT / "tools/compare")]

import names as compat_names  # noqa: E402
import signatures  # noqa: E402
import upstream  # noqa: E402

EXAMPLES = [("tools/examples", "*.cc"), ("tools/examples/c", "*.c"), ("tools/examples/c", "*.f90"), ("tools/examples/c", "*.py"),
            ("tools/compat/programs", "*.cc")]


def coverage():
    loader = importlib.machinery.SourceFileLoader("ramet_coverage", str(ROOT / "tools/coverage"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def twins():
    """{full name in ramet: LibTorch's} by the list of names of the LibTorch compatibility headers."""
    found, space = {}, ""
    for line in compat_names.names_header(compat_names.found()).split("\n"):
        opened = re.match(r"namespace ([\w:]+) \{", line)
        space = opened.group(1) if opened else space
        used = re.match(r"using ::(ramet::[\w:]+);", line)
        if used:
            name = used.group(1)
            found.setdefault(name, re.sub(r"^(at|c10|caffe2)\b", "torch", space) + "::" + name.rpartition("::")[2])
    return found


def differences():
    """{(area's kind, name): [what differs]}; the kind is "function", "method" or ""."""
    found = collections.defaultdict(list)
    table = coverage()
    for how, areas, names in table.DIFFERS:
        for name in names.split():
            found["method" if areas == "methods" else "function" if "functions" in areas else "", name].append(how)
    reasons = dict(signatures.LEFT_OUT)
    for what, names in upstream.stored()[2].items():
        for name in names:
            found["function", name].append("without the overloads with `%s`: %s" % (what, reasons.get(what, "")))
    text = (ROOT / "tools/compare/known.h").read_text() + (ROOT / "tools/compare/known_errors.h").read_text()
    for entry in re.findall(r"\{(\s*\.name = .*?)\},\n", text, flags=re.S):
        fields = {k: " ".join(re.findall(r'"((?:\\.|[^"\\])*)"', v)) for k, v in
                  re.findall(r"\.(\w+)\s*=\s*((?:\s*\"(?:\\.|[^\"\\])*\")+)", entry)}
        for case in fields.get("cases", "").split():
            found["function", case].append(re.sub(r" +", " ", fields.get("reason", "").replace('\\"', '"')))
    return found


class Examples:
    def __init__(self):
        self.files = {}
        for folder, pattern in EXAMPLES:
            for path in sorted((ROOT / folder).glob(pattern)):
                text = path.read_text()
                code = re.sub(r"//.*|/\*.*?\*/", "", text)
                words = re.findall(r"[A-Za-z_]\w*(?:\(|<.*?>\()?", code)  # "name", and "name(" of calls
                words = [re.sub(r"<.*>", "", w) for w in words] + [re.sub(r"[<(].*", "", w) for w in words if "(" in w]
                self.files[str(path.relative_to(ROOT))] = (text, collections.Counter(words), len(code))

    def of(self, entry, most=3):
        """The programs that use it, best ones first: where much of a short program is about it."""
        name = entry.name + ("(" if entry.kind == "function" else "")
        using = [(f, c[name], size) for f, (_, c, size) in self.files.items() if c[name]]
        using.sort(key=lambda u: ("programs" in u[0], u[2] / u[1]))
        return [u[0] for u in using[:most]]


def page_of(path):
    return "example_" + re.sub(r"\W", "_", path)
