"""Reads the BUILD files as Bazel does: what CMake compiles is what they say, and there is no second list.

BUILD and .bzl files are written in Starlark, and those of this tree are Python, too. They are run here with functions of Bazel's
names, which write down the targets. Rules' implementations are not run; targets.py knows what they do.
"""

import os
import pathlib
import re
import types


class Select:
    """select(): one of the values, by conditions that the configuration knows. With `+` it makes a Sum."""

    def __init__(self, cases):
        self.cases = cases

    def __add__(self, other):
        return Sum([self, other])

    def __radd__(self, other):
        return Sum([other, self])


class Sum:
    """Lists and select()s, added."""

    def __init__(self, parts):
        self.parts = parts

    def __add__(self, other):
        return Sum(self.parts + [other])

    def __radd__(self, other):
        return Sum([other] + self.parts)


class Target:
    """What a BUILD file declares: `kind` is the rule's name, for a rule of a .bzl file its implementation's."""

    def __init__(self, package, kind, attributes):
        self.package = package
        self.name = attributes["name"]
        self.kind = kind
        self.attributes = attributes

    @property
    def label(self):
        return "//%s:%s" % (self.package, self.name)


def pattern_of(glob):
    """The regular expression of a pattern of glob()."""
    text = re.escape(glob).replace(r"\*\*/", "(?:.*/)?").replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return re.compile(text + r"\Z")


def split_label(label, package):
    """(package, name) of a label in a BUILD file of `package`. A label of another repository has no package."""
    if label.startswith("@"):
        return None, label
    if label.startswith("//"):
        folder, colon, name = label[2:].partition(":")
        return folder, name if colon else folder.split("/")[-1]
    return package, label[1:] if label.startswith(":") else label


# Rules that are only written down.
RULES = (
    "alias", "cc_binary", "cc_library", "cc_test", "config_setting", "constraint_setting", "constraint_value", "filegroup", "genrule",
    "package_group", "sh_binary", "sh_test", "test_suite",
)  # fmt: skip


class Failed(Exception):
    """fail() of a BUILD file."""


class Workspace:
    """The targets of a tree's packages, each read when it is first asked for.

    `conditions`: {label of a config_setting: whether it holds}. `given`: {label of a .bzl file: its values} of files that Bazel makes.
    """

    def __init__(self, root, conditions, given):
        self.root = pathlib.Path(root)
        self.conditions = conditions
        self.given = given
        self.packages = {}
        self.repositories = {}  # {name: attributes of system_library} of tools/bazel/repositories.bzl
        self.loaded = {}
        self.files = {}
        self.read = []  # the files and folders that the answers depend on
        self.current = []

    # ---- what BUILD files call ----------------------------------------------------------------------

    def _globals(self):
        native = {rule: self._rule(rule) for rule in RULES}
        native.update(
            exports_files=lambda *given, **attributes: None, glob=self._glob, package_name=lambda: self.current[-1],
            bazel_version="4.2.3",
        )  # fmt: skip
        # CMake has its own files for other compilers.
        native.update({rule: lambda **attributes: None for rule in ("platform", "toolchain", "cc_toolchain")})
        anything = types.SimpleNamespace(
            **{name: lambda *given, **attributes: None
               for name in ("bool", "int", "label", "label_list", "output", "string", "string_dict", "string_list")}
        )  # fmt: skip
        return dict(
            {name: value for name, value in native.items() if name != "bazel_version"},
            native=types.SimpleNamespace(**native), package=lambda **attributes: None, select=Select, fail=self._fail,
            rule=lambda implementation, **attributes: self._rule(implementation.__name__),
            repository_rule=lambda **attributes: self._repository, provider=lambda **attributes: None,
            attr=anything, config=anything, CcInfo=None, testing=None, load=None,
        )  # fmt: skip

    def _repository(self, name, **attributes):
        self.repositories[name] = attributes

    def _fail(self, text):
        raise Failed(text)

    def _rule(self, kind):
        def declare(**attributes):
            target = Target(self.current[-1], kind, attributes)
            self.packages[self.current[-1]][target.name] = target

        return declare

    def _glob(self, include, exclude=(), allow_empty=True):
        if not any("*" in pattern for pattern in include):
            return [f for f in sorted(include) if (self.root / self.current[-1] / f).is_file()]
        files = self._files_of(self.current[-1])
        excluded = [pattern_of(p) for p in exclude]
        included = [pattern_of(p) for p in include]
        return [f for f in files if any(p.match(f) for p in included) and not any(p.match(f) for p in excluded)]

    def _files_of(self, package):
        """All files below a package's folder, but those of packages in it."""
        if package not in self.files:
            folder, found = self.root / package, []
            for path, folders, names in os.walk(folder):
                here = os.path.relpath(path, folder)
                # Nor those of a build folder of CMake, or what is made: their times change.
                folders[:] = [
                    f for f in sorted(folders)
                    if f != "__pycache__" and not any(os.path.isfile(os.path.join(path, f, name)) for name in ("BUILD", "CMakeCache.txt"))
                ]  # fmt: skip
                self.read.append(path)
                found += [name if here == "." else here + "/" + name for name in names]
            self.files[package] = sorted(found)
        return self.files[package]

    # ---- reading ------------------------------------------------------------------------------------

    def _run(self, path, package, names):
        self.read.append(str(path))

        def load(label, *wanted, **renamed):
            values = self._load(label, package)
            names.update({name: values[name] for name in wanted}, **{new: values[old] for new, old in renamed.items()})

        names["load"] = load
        exec(compile(path.read_text(), str(path), "exec"), names)
        return names

    def _load(self, label, package):
        if label in self.given or label.startswith("@"):
            return self.given.get(label) or _Anything()
        folder, name = split_label(label, package)
        path = self.root / folder / name
        if path not in self.loaded:
            self.loaded[path] = self._run(path, folder, self._globals())
        return self.loaded[path]

    def package(self, name):
        """{name: Target} of a package."""
        if name not in self.packages:
            self.packages[name] = {}
            self.current.append(name)
            self._run(self.root / name / "BUILD", name, self._globals())
            self.current.pop()
        return self.packages[name]

    def find_repositories(self):
        """Reads which packages of the system the build uses, and which files of theirs."""
        self._load("//tools/bazel:repositories.bzl", "")["system_repositories"]()

    def files_of_repository(self, label):
        """The paths of a filegroup of a repository: "@d3//:modules"."""
        repository, _, name = label[1:].partition("//:")
        attributes = self.repositories[repository]
        self.packages["@" + repository] = {}
        self.current.append("@" + repository)
        exec(attributes["build"], self._globals())
        self.current.pop()
        paths = {name: path for path, name in attributes["files"].items()}
        return [paths[f] for f in self.packages["@" + repository][name].attributes["srcs"]]

    def target(self, label, package=""):
        """The Target of a label, or None where it names a file. An alias is what it stands for."""
        folder, name = split_label(label, package)
        target = self.package(folder).get(name)
        return self.target(target.attributes["actual"], folder) if target and target.kind == "alias" else target

    def value(self, value):
        """A value of an attribute in this configuration."""
        if isinstance(value, Sum):
            return [word for part in value.parts for word in self.value(part)]
        if isinstance(value, Select):
            return self.value(value.cases[self._choice(value)])
        return value

    def _choice(self, select):
        holds = [c for c in select.cases if c != "//conditions:default" and self.conditions[c]]
        # Of two that hold, Bazel takes the narrower one: one variant alone, on a processor family.
        holds.sort(key=lambda c: not c.endswith("_only"))
        return holds[0] if holds else "//conditions:default"

    def attribute(self, target, name, default=None):
        return self.value(target.attributes.get(name, default))


class _Anything(dict):
    """The values of a .bzl file of Bazel's own. Only implementations of rules use them, and toolchains, which CMake has itself."""

    def __missing__(self, name):
        return lambda **attributes: None
