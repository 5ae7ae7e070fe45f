"""Writes what Doxygen reads. Each public header gets a header with every declaration spelled out; the comment has the contract, the
counterpart in LibTorch, differences and examples. There are also pages that list the names of a family, and a page for each example.

    tools/docs/pages.py FOLDER
"""

import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))

import contracts  # noqa: E402
import declarations  # noqa: E402
from lookups import Examples, differences, page_of, twins, upstream  # noqa: E402
from markup import NOTHING, escaped, first_sentence, formatted, header_comment  # noqa: E402

ROOT = declarations.ROOT

# (id, title, what is in it, the folders and headers it has)
FAMILIES = [
    ("functions", "Functions and methods of tensors", "What computes with tensors: functions, and methods of the same names.",
     ("autograd/ops/", "autograd/tensor.h", "autograd/accessor.h", "kernels/pointwise/")),
    ("autograd", "Gradients", "Recording, backward, user functions, hooks, captured steps, gradcheck.", ("autograd/", )),
    ("modules", "Modules", "Layers, containers, their options, nn::functional, initialisers.",
     ("nn/layers/", "nn/functional/", "nn/module/", "nn/init.h", "nn/utils/")),
    ("optimizers", "Optimizers and schedules", "Steps, learning rates over time, averages of weights.", ("nn/optim/", )),
    ("data", "Data", "Datasets, samplers, transforms, loaders.", ("nn/data", )),
    ("files", "Files and other programs' formats", "Archives and safetensors; NumPy, PyTorch, DLPack, Eigen, ONNX, TensorBoard.",
     ("nn/serialize/", "nn/formats/")),
    ("parallel", "Several devices in one process", "Moves, replicas, DataParallel, one order of sums.",
     ("parallel/move/", "parallel/nodes/", "parallel/replicas/", "parallel/apply/")),
    ("processes", "Processes", "Groups of ranks, DistributedDataParallel, sharding, checkpoints.", ("parallel/distributed/", )),
    ("scripts", "Models that PyTorch wrote", "TorchScript and .pt2 files that run and train here, and their translation to C++.", ("nn/script/", )),
    ("see", "Seeing what is going on", "Recordings, the explorer's page, the stepper, pictures, explanations of NaN.", ("tools/see/", )),
    ("ledger", "Runs that can be checked", "Hashes of each step, and verifying a step again.", ("tools/ledger/", )),
    ("c", "The interface for C and Fortran", "C99 functions over the library.", ("nn/c/", "nn/c_script/", "parallel/c/")),
    ("runtime", "Runtime", "Devices, dtypes, memory, random numbers, threads, errors, observers.", ("runtime/", "kernels/")),
]  # yapf: disable


def family(header):
    return next(f[0] for f in FAMILIES if header.startswith(f[3]))


class Writer:
    def __init__(self, out):
        self.out = out
        self.book = contracts.load()
        self.twins, self.differs, self.examples = twins(), differences(), Examples()
        self.methods = upstream.stored()[0]["methods"]
        self.text, self.space = [], ""
        self.listed = collections.OrderedDict((f[0], []) for f in FAMILIES)

    # ---- one declaration ----------------------------------------------------------------------
    def comment(self, entry, first, group=""):
        """The lines of its documentation; `first`: whether it is the first overload of its name."""
        full, parts = entry.full, []
        if group:
            parts.append("@ingroup " + group)
        text = entry.comment or ("" if contracts.is_constructor(entry) else self.book.text(full))
        parts.append(formatted(text.rstrip(":")) if text else NOTHING)
        parts += self.holder(entry) + self.options_of(entry) if entry.kind == "class" else []
        if first and not contracts.is_constructor(entry):
            parts += self.twin(entry) + self.what_differs(entry) + self.example(entry)
        if entry.owner is None:
            parts.append("@par Declared in\n%s, line %d" % (escaped(entry.file), entry.line))
        return "\n\n".join(parts)

    def holder(self, entry):
        """Of a module's holder: what its class's bases say, the class, how it is made, its options."""
        cls = self.book.classes.get(entry.full + "Impl")
        if not self.book.is_module(cls):
            return []
        parts, at, makers = [], cls, []
        while at:
            if at is not cls and at.comment:
                parts.append(formatted(at.comment))
            makers = makers or [m.text for m in at.members if contracts.is_constructor(m) and m.public and not m.name.startswith("~")]
            bases = [self.book.lookup(b, at.scope) for b in at.bases]
            at = next((self.book.classes[b] for b in bases if b in self.book.classes and b.endswith("Impl")), None)
        parts.append('@par Class\n@ref %s "%s": its members are reached by <code>-&gt;</code>, and forward by a call' % (cls.full, cls.name))
        made = sorted({re.sub(r"^explicit ", "", m).replace(m.split("(")[0].split()[-1], entry.name, 1) for m in makers if "(" in m},
                      key=len)
        if made:
            parts.append("@par Made by\n" + "<br>\n".join("<code>%s</code>" % escaped(m) for m in made if "Tail" not in m))
        return parts

    def options_of(self, entry):
        """Of a class with options: a table of them."""
        parts = []
        options = self.options(entry.full + "Options")
        if options and any(m.kind == "option" for m in options.members):
            rows = ["<tr><td><code>%s</code></td><td>%s</td></tr>" % (
                escaped(re.sub(r"^(.*?) (\w+)( = .*)?$", r"\2\3", o.text)), formatted(self.book.text(o.full)).replace("\n\n", "<br>"))
                for o in options.members if o.kind == "option"]
            parts.append('@par Options\n@ref %s "%s", each set by a function of its name, which chains\n<table class="options">%s</table>' % (
                options.full, options.name, "".join(rows)))
        return parts

    def options(self, full):
        """The class of options of that name, or that it is another name of."""
        for e in self.book.by.get(full, ()):
            if e.kind == "class":
                return e
            if e.kind == "alias":
                target = self.book.lookup(re.sub(r"^using \w+ = |<.*", "", e.text).strip(), e.scope)
                return self.options(target) if target else None
        return None

    def twin(self, entry):
        full = entry.full
        if entry.scope == "ramet::Tensor":
            return ["@par LibTorch\n<code>torch::Tensor::%s</code>" % entry.name] if entry.name in self.methods else []
        if entry.owner is not None or not entry.scope.startswith("ramet") or entry.name.startswith("operator"):
            return []
        if full in self.twins:
            return ["@par LibTorch\n<code>%s</code>" % escaped(self.twins[full])]
        return ["@par LibTorch\nhas no such name: this is Ramet&apos;s own"]

    def what_differs(self, entry):
        keys = [("method" if entry.scope == "ramet::Tensor" else "function", entry.name)]
        keys += [("function", entry.name)] if entry.scope == "ramet::Tensor" else [("", entry.name)]
        if entry.scope not in ("ramet", "ramet::Tensor"):
            return []
        found = []
        for key in keys:
            found += self.differs.get(key, ())
        found = list(dict.fromkeys(found))
        return ["@par What differs\n" + ";<br>\n".join(formatted(d) for d in found)] if found else []

    def example(self, entry):
        if entry.owner is not None and entry.scope != "ramet::Tensor" or entry.kind == "macro":
            return []
        files = self.examples.of(entry)
        if not files and entry.owner is None:
            return ["@par Examples\nof this family: @ref family_%s_examples" % family(entry.header)]
        return ["@par Examples\n" + ", ".join('@ref %s "%s"' % (page_of(f), f.rpartition("/")[2]) for f in files)] if files else []

    def put(self, indent, comment, code):
        lines, as_it_is = [indent + "/**"], False
        for line in comment.split("\n"):
            as_it_is = line == "@verbatim" or as_it_is and line != "@endverbatim"
            lines.append(line if as_it_is and line != "@verbatim" else (indent + " * " + line).rstrip())
        self.text += lines + [indent + " */"] + ([indent + code] if code else [])

    @staticmethod
    def code(entry):
        text = re.sub(r"\[\[.*?\]\] ?", "", entry.text)
        text = re.sub(r"\b(inline|RAMET_C_API) ", "", text)
        if entry.kind == "option":
            text = re.sub(r" = (.*)$", r" = \1", text)
        return (entry.template + " " if entry.template else "") + text

    def members(self, cls, indent):
        section, seen = "", set()
        for entry in cls.members:
            if not entry.public or entry.kind == "using" or not entry.name:
                continue
            if entry.section != section:
                if section:
                    self.text.append(indent + "/** @} */")
                section = entry.section
                if section:
                    self.text.append(indent + "/** @name %s\n%s * @{ */" % (escaped(section[0].upper() + section[1:]), indent))
            self.entry(entry, indent, entry.name not in seen, "")
            seen.add(entry.name)
        if section:
            self.text.append(indent + "/** @} */")

    def entry(self, entry, indent, first, group):
        comment = self.comment(entry, first, group)
        if entry.kind == "class":
            bases = [b for b in declarations.cxx.split(re.split(r"(?<!:):(?!:)", entry.text, maxsplit=1)[1])
                     if "detail::" not in b] if entry.bases else []
            head = re.split(r"(?<!:):(?!:)", entry.text, maxsplit=1)[0].strip()
            head = head.replace(" final", "") + (" : " + ", ".join(bases) if bases else "")
            if any(m.kind == "option" for m in entry.members):
                comment += "\n\nEach option is set by a function of its name, which returns the options, and read by one without an argument."
            self.put(indent, comment, (entry.template + " " if entry.template else "") + head + " {")
            self.text.append(indent + "public:" if entry.key != "union" else "")
            self.members(entry, indent + "  ")
            self.text.append(indent + "};")
        elif entry.kind == "enum":
            self.put(indent, comment, entry.text + " {")
            for value in entry.members:
                self.put(indent + "  ", formatted(value.comment) or NOTHING, value.text + ",")
            self.text.append(indent + "};")
        elif entry.kind == "macro":
            self.put(indent, "@def %s\n%s" % (entry.name, comment), "#define " + entry.text)
        else:
            self.put(indent, comment, self.code(entry) + ";")

    # ---- one header ---------------------------------------------------------------------------
    def header(self, path, entries):
        group = "header_" + re.sub(r"\W", "_", path)
        said = header_comment(path)
        title = first_sentence(said) or path
        if len(title) > 90:
            title = title[:title.rfind(" ", 0, 88)] + " ..."
        if path.startswith(declarations.C_HEADERS):  # the text there between the functions
            said += "\n\n" + "\n\n".join(re.sub(r"(?m)^ \* ?", "", t) for t in re.findall(
                r"^/\* (?!-)((?:(?!\*/)[\s\S])*?)\s*\*/\n\n", (ROOT / path).read_text(), flags=re.M)[1:])
        self.text = ["/** @file\n * @brief %s */" % escaped(title)]
        self.put("", "@defgroup %s %s\n@ingroup family_%s\n\n<code>\\#include &quot;%s&quot;</code>%s\n\n%s" % (
            group, escaped(title), family(path), path, "" if self.own_library(path) else " (or ramet.h, which has it)", formatted(said)), "")
        seen, space = set(), ""
        for entry in entries:
            if entry.scope != space:
                if space:
                    self.text.append("}  // namespace " + space)
                space = entry.scope
                if space:
                    self.text.append("namespace %s {" % space)
            first = entry.full not in seen
            seen.add(entry.full)
            self.entry(entry, "", first, group)
            if first and contracts.counts(entry) and entry.kind != "enumerator":
                self.listed[family(path)].append((entry, group))
        if space:
            self.text.append("}  // namespace " + space)
        target = self.out / "headers" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(self.text) + "\n")

    @staticmethod
    def own_library(path):
        return path.startswith("tools/") or declarations.check_layers.apart(path) is not None

    # ---- pages --------------------------------------------------------------------------------
    def page(self, name, lines):
        self.pages.append("/** @page %s %s\n%s\n*/\n" % (name[0], name[1], "\n".join(lines)))

    @staticmethod
    def reference(entry, group, text):
        """A link to it; of what is declared for some types only (`struct X<int>`) to its header's page."""
        special = entry.kind == "class" and re.search(r"\b%s ?<" % entry.name, entry.text)
        return '@ref %s "%s"' % (group if special else entry.full, text)

    def family_pages(self):
        for number, (name, title, what, _) in enumerate(FAMILIES):
            self.pages.append("/** @defgroup family_%s %s\n%s\n\nAll its names in one table: @ref family_%s_names */" % (
                name, title, what, name))
            rows, used, forms = [], collections.Counter(), collections.OrderedDict()
            full_names = {entry.full for entry, _ in self.listed[name]}
            for entry, group in sorted(self.listed[name], key=lambda e: (e[0].name.lower().lstrip("_"), e[0].scope)):
                stem = re.sub(r"(_out|(?<=\w)_|Impl|Options|ParamState)$", "", entry.full)
                stem = re.sub(r"::functional::(\w+)Func$", r"::\1", stem)
                forms.setdefault(stem if stem in full_names else entry.full, []).append((entry, group))
            for stem, entries in forms.items():
                entries.sort(key=lambda e: (e[0].full != stem, len(e[0].name)))
                entry = entries[0][0]
                for f in self.examples.of(entry):
                    used[f] += 1
                links = [self.reference(e, g, e.full.replace("ramet::", "", 1) if e is entry else e.name) for e, g in entries]
                own = "" if entry.full in self.twins or entry.kind == "macro" or name == "c" else "own"
                rows.append("<tr><td>%s</td><td>%s</td><td>%s</td></tr>" % (
                    " ".join(links), own, formatted(first_sentence(self.book.text(entry.full)))))
            self.page(("family_%s_names" % name, title + ": names"), [
                what, "", "A name stands in LibTorch as <code>torch::name</code>, unless it is Ramet&apos;s <em>own</em>. By header: "
                "@ref family_%s. @ref family_%s_examples." % (name, name), "",
                "<table class=\"names\"><tr><th>name</th><th></th><th>contract</th></tr>", *rows, "</table>"])
            self.page(("family_%s_examples" % name, title + ": examples"), [
                "Programs that <code>./tools/test</code> builds and runs, with how many names of the family each uses.", "", "<ul>",
                *("<li>@ref %s (%d)</li>" % (page_of(f), n) for f, n in used.most_common(12)), "</ul>"])

    def example_pages(self):
        shown = self.out / "examples"
        shown.mkdir(parents=True, exist_ok=True)
        for path, (text, _, _) in self.examples.files.items():
            said = header_comment(path)
            name = path.replace("/", "__")
            (shown / name).write_text(text)
            self.page((page_of(path), "%s" % escaped(path.rpartition("/")[2])), [
                formatted(said), "", "<code>%s</code>" % escaped(path), "", "@include %s" % name])
        rows = ["<li>@ref %s &mdash; %s</li>" % (page_of(p), formatted(first_sentence(header_comment(p)))) for p in self.examples.files]
        self.page(("examples", "Examples"), ["Each is built and run by <code>./tools/test</code>.", "", "<ul>", *rows, "</ul>"])

    def notes_page(self):
        """Where Ramet differs, from the notes of the comparison."""
        text = (ROOT / "tools/compare/NOTES.md").read_text().split("\n", 1)[1]
        body, item = [], []
        for line in text.split("\n") + [""]:
            if line.startswith("- ") or not line.strip():
                if item:
                    words = re.sub(r"\*\*(.*?)\*\*", r"\1", " ".join(item))
                    body.append("<li>%s</li>" % formatted(words[2:]) if words.startswith("- ") else formatted(words) + "\n")
                item = [line.strip()] if line.strip() else []
            else:
                item.append(line.strip())
        text = "\n".join(body)
        text = re.sub(r"((?:<li>.*</li>\n?)+)", r"<ul>\n\1</ul>\n", text)
        self.page(("differences", "Where Ramet differs from LibTorch"), [text])

    def write(self):
        headers = collections.OrderedDict()
        for entry in self.book.entries:
            if entry.public and entry.owner is None and entry.name and entry.kind != "using" and (
                    entry.scope.split("::")[0] in ("ramet", "")):
                headers.setdefault(entry.header, []).append(entry)
        for path, entries in headers.items():
            self.header(path, entries)
        self.pages = []
        self.family_pages()
        self.example_pages()
        self.notes_page()
        (self.out / "pages.dox").write_text("\n".join(self.pages))
        return sum(len(v) for v in self.listed.values()), len(headers)


def main(arguments):
    out = pathlib.Path(arguments[0])
    names, headers = Writer(out).write()
    print("pages: %d names of %d headers" % (names, headers))


if __name__ == "__main__":
    main(sys.argv[1:])
