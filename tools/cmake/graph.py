"""The targets of the BUILD files in one configuration: their sources, what they stand on, and what is linked whole."""

import os

from build_files import Workspace, split_label

HEADERS = (".h", ".inc")
COMPILED = (".cc", ".cu", ".s")


class Source:
    """A file that a target names. `made`: its path is below the build folder; `maker`: the Target that makes it, if one does."""

    def __init__(self, path, maker=None):
        self.path = path
        self.maker = maker

    @property
    def made(self):
        return self.maker is not None

    @property
    def bazel_path(self):
        """What .bazelrc's patterns see."""
        return ("bazel-out/bin/" if self.made else "") + self.path


def conditions(x86_64, variants, gpus):
    """What select() asks for."""
    holds = {
        "//tools/bazel:x86_64": x86_64,
        "//tools/bazel:sanitized": False,
        "//tools/bazel:apart": False,
        "//tools/bazel:no_gpu_kernels": False,
        "//tools/cuda:is_cuda": gpus == "cuda",
        "//tools/cuda:is_check": False,
        "//tools/cuda:is_packed": False,
        "//tools/cuda:is_quick": False,
    }
    for variant in ("base", "v3", "v4"):
        holds["//tools/bazel:x86_64_%s_only" % variant] = x86_64 and variants == variant
    return holds


class Graph:
    def __init__(self, root, x86_64=True, variants="all", gpus="emulated", host_fma=False):
        defs = {"HAVE_CUDA": gpus == "cuda", "SMALL_CODE": [], "QUICK": [], "HOST_FMA": ["-mfma"] if host_fma else []}
        self.root = root
        self.workspace = Workspace(root, conditions(x86_64, variants, gpus), {"@local_cuda//:defs.bzl": defs})
        self.workspace.find_repositories()
        self.outputs = {}
        self.closures = {}

    def get(self, target, name, default=None):
        return self.workspace.attribute(target, name, [] if default is None else default)

    # ---- files ----------------------------------------------------------------------------------------

    def _maker(self, label, package):
        """The target that makes the file of a label, or that stands for files; None for a file of the tree."""
        target = self.workspace.target(label, package)
        if target:
            return target
        from_package, name = split_label(label, package)
        if from_package not in self.outputs:
            self.outputs[from_package] = {
                out: t for t in self.workspace.package(from_package).values() if t.kind == "genrule" for out in self.get(t, "outs")
            }
        return self.outputs[from_package].get(name)

    def files(self, label, package):
        """The Sources that a label among srcs or data stands for."""
        if label.startswith("@"):
            return [Source(path) for path in self.workspace.files_of_repository(label)]
        maker = self._maker(label, package)
        if maker is None:
            from_package, name = split_label(label, package)
            path = _join(from_package, name)
            if not os.path.isfile(os.path.join(self.root, path)):
                raise LookupError("//%s: %s is neither a target nor a file" % (package, label))
            return [Source(path)]
        if maker.kind == "filegroup":
            return [file for src in self.get(maker, "srcs") for file in self.files(src, maker.package)]
        if maker.kind == "genrule":
            return [Source(_join(maker.package, out), maker) for out in self.get(maker, "outs")]
        if maker.kind == "_joined_source_impl":
            return [Source(_join(maker.package, maker.name), maker)]
        if maker.kind == "_host_sources_impl":
            return [Source(_join(maker.package, "%s/%s.cc" % (maker.name, os.path.basename(f.path))), maker) for f in self.sources(maker)]
        if maker.kind == "_nvcc_objects_impl":
            return self.sources(maker)
        raise LookupError("//%s: %s is a %s, which CMake does not make" % (package, label, maker.kind))

    def sources(self, target):
        return [file for src in self.get(target, "srcs") for file in self.files(src, target.package)]

    def compiled(self, target):
        if target.kind not in ("cc_library", "cc_binary", "cc_test"):
            return []
        return [file for file in self.sources(target) if file.path.endswith(COMPILED)]

    def headers(self, target):
        """Of the tree, which a target shows to others."""
        return [f.path for src in self.get(target, "hdrs") for f in self.files(src, target.package) if not f.made]

    # ---- targets ----------------------------------------------------------------------------------------

    def dependencies(self, target):
        """(targets, labels of other repositories) that one names itself; precompiled headers are neither."""
        ours, others = [], []
        for label in self.get(target, "deps"):
            if label.startswith("@"):
                others.append(label)
            else:
                found = self.workspace.target(label, target.package)
                if found.kind != "_precompiled_header_impl":
                    ours.append(found)
                else:
                    # What the header is made of, the tests' framework for example.
                    others += [l for l in self.get(found, "deps") if l.startswith("@")]
        return ours, others

    def closure(self, targets):
        """All that they are linked with, themselves included, lower ones first: {label: Target}."""
        found = {}
        for target in targets:
            for below in self._closure_of(target):
                found.setdefault(below.label, below)
        return found

    def _closure_of(self, target):
        if target.label not in self.closures:
            found = {}
            for dependency in self.dependencies(target)[0]:
                for below in self._closure_of(dependency):
                    found.setdefault(below.label, below)
            found[target.label] = target
            self.closures[target.label] = list(found.values())
        return self.closures[target.label]

    def others(self, targets):
        """The labels of other repositories that a closure needs."""
        return sorted({label for t in self.closure(targets).values() for label in self.dependencies(t)[1]})

    def components(self):
        """{name: Target} of tools/sdk/BUILD's rows."""
        return {n: t for n, t in self.workspace.package("tools/sdk").items() if t.kind == "_sdk_component_impl"}

    def component(self, row):
        """(libraries that it names, {label: Target} of all that is its own)."""
        named = [self.workspace.target(label) for label in self.get(row, "libraries")]
        below = self.closure([self.workspace.target(label) for label in self.get(row, "without")])
        return named, {label: t for label, t in self.closure(named).items() if label not in below}

    def tests(self, folders):
        """Targets of the kinds that run: programs of their own, and names of a program's files."""
        kinds = ("cc_test", "_program_of_file_impl", "sh_test")
        return [t for f in folders for t in self.workspace.package(f).values() if t.kind in kinds]

    def program(self, test):
        """The target that a test runs."""
        return self.workspace.target(test.attributes["program"], test.package) if test.kind == "_program_of_file_impl" else test


def _join(package, name):
    return package + "/" + name if package else name
