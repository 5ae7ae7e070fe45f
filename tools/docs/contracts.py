#!/usr/bin/env python3
"""Counts public names without a contract: fails where one has none, naming file and line.

    tools/docs/contracts.py            checks
    tools/docs/contracts.py --numbers  also says how many names have which kind of contract

A name is what a public header declares in a namespace or a class, overloads together; constructors and operators are their
class's. Its contract is, first of these that is there:

  own        a `///` comment right above it or a comment after it on its line; above a row of a list (.inc) or of a macro it
             holds for all that the row makes. One that ends with a colon holds for everything that follows, up to an empty
             line or another comment. (In the headers for C a comment of C)
  row        a function of kernels/pointwise/lists.h: the comment of its row in kernels/pointwise/rows
  enum       a value of an enumeration that has one
  override   that of the function that it overrides
  alias      another name of something that has one, by a row (RAMET_ALIAS...) or `using`
  form       `name_` and `name_out` of `name`; a method of Tensor, a function of nn::functional or linalg of the function
  named      a member or an option that the comment of its class, or that of the class that takes the options, names (a function: `name()`)
  general    an option, or a type that classes name, that means the same everywhere (general.py)
  module     a holder's is its class's, a class's that of its base or of its function; forward, options, reset, ... are what
             every module's are (general.py), and `forward` computes what its class says; `XOptions` are the options of X
  header     of a class: the header's first comment, where its first sentence names it (`Module: ...`)
"""

import collections
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))

import declarations  # noqa: E402
import general  # noqa: E402

PROMISED = 0  # names without a contract
ROOT = declarations.ROOT
SKIPPED = ("using",)


def is_constructor(entry):
    return entry.kind == "function" and entry.owner is not None and entry.name.lstrip("~") == entry.owner.name


def counts(entry):
    ours = entry.public and entry.scope.split("::")[0] in ("", "ramet")
    return ours and entry.kind not in SKIPPED and entry.name and not entry.name.startswith("operator") and not entry.name.startswith("~") and not is_constructor(entry)


def rows():
    """{function: comment of its row} of the pointwise lists."""
    text = (ROOT / "kernels/pointwise/lists.h").read_text()
    structs = {}
    for path in sorted((ROOT / "kernels/pointwise/rows").glob("*.h")):
        for comment, name in re.findall(r"((?:^ *///.*\n)+) *struct (\w+)", path.read_text(), flags=re.M):
            structs[name] = re.sub(r"(?m)^ *///\s?", "", comment).strip()
    found = re.findall(r"\bX\((\w+), (\w+)\)(?: */\* (.*?) \*/)?", text)
    return {name: structs.get(row, said) for name, row, said in found if structs.get(row, said)}


def aliases():
    """{another name: the function it is a name of} of the rows of lists of operations."""
    found = {}
    for path in sorted((ROOT / "autograd/ops").rglob("*.inc")):
        for macro, row in re.findall(r"^(RAMET_\w*ALIAS\w*)\((.*)", path.read_text(), flags=re.M):
            words = declarations.cxx.split(row)
            found[words[0]] = words[1].rstrip(")")
    return found


class Book:
    """Contracts of all names: `of(full)` is (text, what it is) or None."""

    def __init__(self, entries):
        self.entries = entries
        self.by = collections.defaultdict(list)
        for e in entries:
            self.by[e.full].append(e)
        self.classes = {e.full: e for e in entries if e.kind == "class"}
        self.rows, self.aliases = rows(), aliases()
        self.known, self.under_way, self.first = {}, set(), {}
        self.users = collections.defaultdict(list)  # of an options class: comments of what takes it
        for e in entries:
            for word in set(re.findall(r"\b\w+Options\b", e.text)) if e.kind == "function" and e.public else ():
                self.users[word].append(e.owner if is_constructor(e) else e)

    def of(self, full):
        if full in self.known:
            return self.known[full]
        if full in self.under_way:
            return None
        self.under_way.add(full)
        result = next((r for r in self.ways(full) if r and r[0].strip()), None)
        self.under_way.discard(full)
        self.known[full] = result
        return result

    def ways(self, full):
        entries = self.by.get(full, [])
        if not entries:
            return
        first = entries[0]
        space, name, owner = first.scope, first.name, first.owner
        own = [e for e in entries if e.comment.strip()]
        if own and not self.is_of_row(space, name, own[0].comment):
            yield own[0].comment, "own"
        if space in ("ramet", "ramet::Tensor") and name in self.rows:
            yield self.rows[name], "row"
        if first.kind == "enumerator":
            yield self.text(owner.full) if owner.name else owner.comment, "enum"
        if owner is not None:
            yield self.overridden(owner, name, set()), "override"
        yield self.alias(space, name), "alias"
        yield self.form(space, name), "form"
        if first.kind == "alias":
            yield self.aliased(first), "alias"
            yield general.TYPES.get(name, "") if owner is not None else "", "general"
        if first.kind == "option" and name in general.ANYWHERE:
            yield general.option(name, first.text), "general"
        if owner is not None and first.kind in ("option", "variable", "alias", "function"):
            yield self.named(owner, name, first.kind == "function"), "named"
        if first.kind == "option":
            yield general.option(name, first.text), "general"
        yield self.module(first), "module"
        yield self.of_header(first), "header"

    def is_of_row(self, space, name, comment):
        """Whether `comment` stands above a row: it is also that of the function that `name` is a form of."""
        functions = [n for end in ("_out", "_") if name.endswith(end) for n in self.by.get("%s::%s" % (space, name[:-len(end)]), ())]
        return any(e.comment == comment for e in functions)

    def names(self):
        """{full name: entries of that name} of what counts."""
        found = collections.OrderedDict()
        for entry in self.entries:
            if counts(entry):
                found.setdefault(entry.full, []).append(entry)
        return found

    def without(self):
        """The first entries of names without a contract, by file and line."""
        missing = [entries[0] for full, entries in self.names().items() if not self.of(full)]
        return sorted(missing, key=lambda e: (e.file, e.line))

    def text(self, full):
        found = self.of(full)
        return found[0] if found else ""

    def of_header(self, entry):
        """What the header's first comment says, where its first sentence names a class: `Module: ...`."""
        if entry.kind != "class" or entry.owner is not None:
            return ""
        if entry.header not in self.first:
            text = (ROOT / entry.header).read_text()
            self.first[entry.header] = re.sub(r"(?m)^// ?", "", re.match(r"(//.*\n)*", text).group(0))
        said = self.first[entry.header]
        first = re.match(r"(?s).*?(?:[.:](?=\s)|$)", said).group(0)
        return said if re.sub(r"Impl$", "", entry.name) in re.findall(r"\w+", first) else ""

    def lookup(self, name, space):
        """The class that `name` means where it stands in `space`."""
        name = re.sub(r"<.*", "", name).lstrip(":")
        while True:
            full = "%s::%s" % (space, name) if space else name
            if full in self.by:
                return full
            if not space:
                return None
            space = space.rpartition("::")[0]

    def overridden(self, owner, name, seen):
        for base in owner.bases:
            full = self.lookup(base, owner.scope)
            if full and full not in seen and full in self.classes:
                seen.add(full)
                text = self.text("%s::%s" % (full, name)) or self.overridden(self.classes[full], name, seen)
                if text:
                    return text
        return ""

    def alias(self, space, name):
        """Of a row of an alias: what it is another name of."""
        for end in ("", "_", "_out"):
            stem = name[:len(name) - len(end)]
            if name.endswith(end) and stem in self.aliases and space in ("ramet", "ramet::Tensor"):
                of = self.aliases[stem]
                return self.said("Another name of `%s`" % (of + end), self.text("%s::%s" % (space, of)) or self.text("ramet::" + of))
        return ""

    @staticmethod
    def said(words, text):
        return "%s: %s" % (words, text) if text else ""

    def form(self, space, name):
        """Of what is a form of a function: that function's."""
        if space == "ramet::Tensor" and self.text("ramet::" + name):
            return self.text("ramet::" + name)
        if space == "ramet::nn::functional":
            return self.said("With the numbers in `options`", self.text("ramet::" + name))
        if space == "ramet::linalg":
            return self.text("ramet::linalg_" + name) or self.text("ramet::" + name)
        for end, words in (("_out", "Writes into `out`"), ("_", "In place")):
            if name.endswith(end):
                text = self.said(words, self.text("%s::%s" % (space, name[:-len(end)])))
                if text:
                    return text
        return ""

    def aliased(self, entry):
        target = entry.text.split("=", 1)[1] if "=" in entry.text else ""
        match = re.match(r"\s*(?:typename )?(?:::)?([\w:]+)", target)
        full = self.lookup(match.group(1), entry.scope) if match else None
        if full and full != entry.full and self.text(full):
            return "%s: %s" % (target.strip(), self.text(full))
        return ""

    def named(self, owner, name, function):
        """What names an option or a member: its class's comment, or that of the class that takes the options."""
        users = [owner] + self.users[owner.name]
        stem = re.sub(r"(Func)?Options$", "", owner.name)
        users += [e for n in (stem, stem + "Impl") for e in self.by.get("%s::%s" % (owner.scope, n), ())]
        for alias in self.entries:
            if alias.kind == "alias" and re.search(r"=\s*%s\b" % owner.name, alias.text):
                users += self.users[alias.name]
        for user in users:
            if re.search(r"\b%s%s" % (re.escape(name), r"\(" if function else r"\b"), self.text(user.full)):
                holder = re.sub(r"Impl$", "", user.name)
                return "See `%s`." % (holder if self.by.get("%s::%s" % (user.scope, holder)) else user.name)
        return ""

    def is_module(self, cls, seen=()):
        """Whether it is the class of a module: NameImpl, with nn::Module among its bases."""
        if cls is None or cls.full in seen or not (seen or cls.name.endswith("Impl")):
            return False
        for base in cls.bases:
            if re.match(r"(::)?(ramet::)?(nn::)?(Cloneable|Module)\b", base):
                return True
            if self.is_module(self.classes.get(self.lookup(base, cls.scope)), (*seen, cls.full)):
                return True
        return False

    def module(self, entry):
        """Of modules and options: what is the same for all of them."""
        name, owner = entry.name, entry.owner
        if self.is_module(owner) and name in general.MODULE and (name != "forward" or self.of(owner.full)):
            return general.MODULE[name]
        if owner is not None and name == "Impl" and "ModuleHolder" in owner.text:
            return "The class of the module that this holds."
        if entry.kind == "class" and name.endswith("Options"):
            return self.options(entry)
        if entry.kind == "class" and name.endswith("ParamState") and self.of(entry.full.replace("ParamState", "")):
            return "What `%s` keeps for a parameter." % name.replace("ParamState", "")
        if entry.kind == "class" and self.is_module(self.classes.get(entry.full + "Impl")):
            return self.text(entry.full + "Impl")
        if entry.kind == "class" and self.is_module(entry):
            for base in entry.bases:
                full = self.lookup(base, entry.scope)
                if full and full in self.classes and self.classes[full].name.endswith("Impl") and self.text(full):
                    return self.text(full)
            snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:-4])
            for function in (name[:-4].lower(), snake.lower(), re.sub(r"_?loss$", "", snake.lower())):
                for space in ("ramet::nn::functional", "ramet"):
                    if self.text("%s::%s" % (space, function)):
                        return "`%s` as a module: %s" % (function, self.text("%s::%s" % (space, function)))
        return ""

    def options(self, entry):
        """Of an options class: the class that takes the options."""
        stem = re.sub(r"(Func)?Options$", "", entry.name)
        takers = [e for e in self.users[entry.name] if e is not entry and self.of(e.full)]
        named = [n for n in (stem, stem + "Impl") if self.of("%s::%s" % (entry.scope, n))]
        if named or takers:
            return "The options of `%s`." % (stem if named else re.sub(r"Impl$", "", takers[0].name))
        return ""


def load():
    entries = declarations.read()
    return Book(entries + declarations.macros(sorted({e.header for e in entries if e.public})))


def main(arguments):
    book = load()
    missing = book.without()
    for entry in missing:
        print("%s:%d: %s has no contract" % (entry.file, entry.line, entry.full))
    names = book.names()
    if "--numbers" in arguments:
        counted = collections.Counter(book.of(full)[1] for full in names if book.of(full))
        print("\n".join("%-9s %d" % item for item in counted.most_common()))
    print("contracts: %d public names, %d without a contract, at most %d promised" % (len(names), len(missing), PROMISED))
    return 1 if len(missing) > PROMISED else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
