#!/usr/bin/env python3
"""Writes targets.cmake: what the BUILD files declare, in CMake's words (CMakeLists.txt calls this and includes it).

usage: targets.py --root DIR --out DIR [--variants all|base|v3|v4|one] [--gpus emulated|cuda] [--host-fma] [--werror] [--not-gcc]
                  [--component NAME]... [--program LABEL]... [--tests]

Libraries are static, an archive for each of Bazel's; `ramet_` and the label are a target's name. DIR/components/NAME.json is what
tools/sdk/make_tree.py reads, for `cmake --install`.
"""

import argparse
import json
import os
import pathlib
import re
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent))
from graph import HEADERS, Graph  # noqa: E402
from options import Options  # noqa: E402

TIMEOUTS = {"small": 180, "medium": 600, "large": 1800, "enormous": 7200}  # .bazelrc
# Repositories of .bzl, and the targets of dependencies.cmake.
REPOSITORIES = {"@googletest//:gtest": "googletest", "@local_cuda//:cudart": "cudart"}
# Those of tests alone, which the option RAMET_TESTS asks for.
FOR_TESTS = ("googletest", "rapidcheck", "eigen", "json", "xxhash", "zlib")
TEST_FOLDERS = ("tests", "tests/runtime", "tests/kernels", "tests/autograd", "tests/capture", "tests/digests", "tests/nn", "tests/parallel")


# Sizes of GCC's own memory.
GCC_ALONE = "--param=ggc-"


def quoted(words):
    return " ".join('"%s"' % str(w).replace("\\", "\\\\").replace('"', '\\"') for w in words)


def external(label):
    return REPOSITORIES.get(label, label.lstrip("@"))


def optimises(option):
    return option.startswith("-O") or option == "-U_FORTIFY_SOURCE"


class Writer:
    def __init__(self, graph, out, werror, gcc=True):
        self.graph = graph
        self.out = out
        self.werror = werror
        self.gcc = gcc
        self.options = Options(pathlib.Path(graph.root, ".bazelrc"))
        self.lines = []
        self.written = set()
        self.made = set()
        self.holders = {}

    def line(self, text, *words):
        self.lines.append(text % words if words else text)

    def name(self, target):
        parts = target.package.split("/") if target.package else []
        if target.name not in parts[-1:]:
            parts = parts + [target.name]
        return "ramet_" + re.sub(r"[^A-Za-z0-9_]", "_", "_".join(parts))

    def path(self, source):
        return ("${ramet_made}/" if source.made else "" if source.path.startswith("/") else "${ramet_root}/") + source.path

    # ---- options --------------------------------------------------------------------------------------

    def clean(self, given):
        """(options for CMake, the precompiled header that they name or None, the year of the standard or None)."""
        words, header, standard, words_left = [], None, None, list(given)
        while words_left:
            word = words_left.pop(0)
            if word == "-include":
                header = words_left.pop(0)
            elif word.startswith("-std=c++"):
                standard = word[len("-std=c++"):]
            elif word in ("-fpch-deps", "-Werror") and not (word == "-Werror" and self.werror):
                pass
            elif not self.gcc and word.startswith(GCC_ALONE):
                pass
            else:
                words.append(word)
        return words, header, standard

    def compile_options(self, words):
        """For C++ alone: a target may have sources of CUDA or of the assembler. What optimises, where the build does."""
        plain = [w for w in words if not optimises(w)]
        fast = [w for w in words if optimises(w)]
        result = ["$<$<COMPILE_LANGUAGE:CXX>:%s>" % ";".join(plain)] if plain else []
        return result + (["$<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<CONFIG:Debug>>>:%s>" % ";".join(fast)] if fast else [])

    def holder(self, header, words, standard):
        """A target that precompiles a header with such options, for all that begin with it."""
        key = (header, tuple(w for w in words if not w.startswith("-W")), standard)
        if key not in self.holders:
            name = self.holders[key] = "ramet_headers_%d" % (len(self.holders) + 1)
            package, _, file = header.rpartition("/")
            made = self.graph.workspace.package(package)[file[:-len(".h")]]
            self.line('add_library(%s OBJECT EXCLUDE_FROM_ALL "${ramet_empty}")', name)
            self.line("ramet_compiled(%s %s)", name, standard)
            self.line("target_compile_options(%s PRIVATE %s)", name, quoted(self.compile_options(list(key[1]))))
            for label in self.graph.get(made, "deps"):
                if label.startswith("@"):
                    self.line("target_link_libraries(%s PRIVATE ramet_external_%s)", name, external(label))
            own = ["${ramet_root}/" + h for h in self.graph.get(made, "own_headers")]
            self.line("target_precompile_headers(%s PRIVATE %s)", name, quoted(["<%s>" % h for h in self.graph.get(made, "headers")] + own))
        return self.holders[key]

    def options_of(self, target, files):
        """Compiler options of a target's C++ sources, and of single ones."""
        name = self.name(target)
        sources = [f for f in files if f.path.endswith(".cc")]
        if not sources:
            return self.line("ramet_compiled(%s 20)", name)
        common, header, standard = self.clean(self.options.all + self.graph.get(target, "copts"))
        by_file = {f.path: self.clean(self.options.of(f.bazel_path)) for f in sources}
        of_all = next(iter(by_file.values()))[0]
        if any(words != of_all for words, _, _ in by_file.values()):
            of_all = []
        words = common + of_all
        self.line("ramet_compiled(%s %s)", name, standard)
        self.line("target_compile_options(%s PRIVATE %s)", name, quoted(self.compile_options(words)))
        begins = {path: header or own for path, (_, own, _) in by_file.items()}
        chosen = next((h for h in begins.values() if h), None)
        if chosen:
            self.line("ramet_begins_with(%s %s)", name, self.holder(chosen, words, standard))
        for file in sources:
            properties = []
            if of_all != by_file[file.path][0]:
                properties += ["COMPILE_OPTIONS", ";".join(self.compile_options(by_file[file.path][0]))]
            # A precompiled header is read only by what is optimised as it was.
            of_other_speed = any(optimises(w) and w not in words for w in by_file[file.path][0])
            if chosen and (not begins[file.path] or of_other_speed):
                properties += ["SKIP_PRECOMPILE_HEADERS", "ON"]
            if properties:
                self.line('set_source_files_properties("%s" PROPERTIES %s)', self.path(file), quoted(properties))

    # ---- files that are made ----------------------------------------------------------------------------

    def make(self, files):
        for file in files:
            if file.made and file.path not in self.made:
                self.made.add(file.path)
                getattr(self, "make_" + file.maker.kind.strip("_"))(file)

    def write(self, path, text):
        """A file of the build folder, which keeps its time where nothing changes."""
        where = self.out / path
        where.parent.mkdir(parents=True, exist_ok=True)
        if not where.is_file() or where.read_text() != text:
            where.write_text(text)

    def make_joined_source_impl(self, file):
        # Includes, not copies as Bazel's: what depends on what is known from the compiler.
        names = self.graph.get(file.maker, "begin") + [f.path for f in self.graph.sources(file.maker)]
        self.write("made/" + file.path, "".join('#include "%s"\n' % name for name in names))

    def make_host_sources_impl(self, file):
        for source, made in zip(self.graph.sources(file.maker), self.graph.files(":" + file.maker.name, file.maker.package)):
            if made.path == file.path:
                self.write("made/" + file.path, '#include "%s"\n' % source.path)

    def make_genrule(self, file):
        """Bazel's command, in the tree's root."""
        rule, inputs, depends = file.maker, [], []
        archives = {}

        def paths(label):
            target = None if label.startswith("@") else self.graph.workspace.target(label, rule.package)
            if target and target.kind == "cc_library":
                self.library(target)
                depends.append(self.name(target))
                archives[label] = "%s/%s" % (self.out, self.archive(target))
                return [archives[label]]
            found = self.graph.files(label, rule.package)
            self.make(found)
            for f in found:
                depends.append(self.path(f))
            return ["%s/made/%s" % (self.out, f.path) if f.made else f.path for f in found]

        for label in self.graph.get(rule, "srcs"):
            if label.startswith("@"):
                self.line("ramet_find_files(%s %s)", label[1:].split("//")[0], quoted(self.graph.workspace.files_of_repository(label)))
            inputs += paths(label)
        for label in self.graph.get(rule, "tools"):
            paths(label)
        made = "%s/made/%s" % (self.out, file.path)
        command = self.graph.get(rule, "cmd")
        command = re.sub(r"\$\(locations? ([^)]+)\)", lambda m: " ".join(paths(m.group(1))), command)
        for word, value in (("$(SRCS)", " ".join(inputs)), ("$@", made), ("$(NM)", '"$NM"'), ("$$", "$")):
            command = command.replace(word, value)
        command = re.sub(r"\bpython3 ", '"$PYTHON" -B ', command)
        script = "made/%s.sh" % file.path
        self.write(script, "set -e\n" + command + "\n")
        self.line('add_custom_command(OUTPUT "%s" COMMAND "${CMAKE_COMMAND}" -E env "NM=${CMAKE_NM}" "PYTHON=${Python3_EXECUTABLE}" sh '
                  '"${ramet_out}/%s" DEPENDS "${ramet_out}/%s" %s WORKING_DIRECTORY "${ramet_root}" VERBATIM)',
                  self.path(file), script, script, quoted(sorted(set(depends))))  # fmt: skip
        pathlib.Path(made).parent.mkdir(parents=True, exist_ok=True)

    # ---- targets ----------------------------------------------------------------------------------------

    def archive(self, target):
        return "lib/lib%s.a" % self.name(target)

    def library(self, target):
        """A library and all that it stands on; says its name."""
        name = self.name(target)
        if target.label in self.written:
            return name
        self.written.add(target.label)
        ours, others = self.graph.dependencies(target)
        links = [self.library(t) for t in ours] + ["ramet_external_" + external(label) for label in others]
        files = self.graph.compiled(target)
        self.make(files)
        # Headers that are made: in time for the sources.
        more = [f for f in self.graph.sources(target) if f.made and f.path.endswith(HEADERS)] if files else []
        self.make(more)
        self.line("")
        if files:
            whole = bool(self.graph.get(target, "alwayslink", False))
            kind = "OBJECT" if whole and self.graph.get(target, "testonly", False) else "STATIC"
            self.line("add_library(%s %s EXCLUDE_FROM_ALL %s)", name, kind, quoted([self.path(f) for f in files + more]))
            if kind == "STATIC":
                self.line("ramet_archive(%s)", name)
            self.options_of(target, files)
            cuda = [f for f in files if f.path.endswith(".cu")]
            if cuda:
                maker = self.graph.workspace.target(":%s_nvcc" % target.name, target.package)
                self.line("ramet_nvcc(%s %s)", name, quoted(self.graph.get(maker, "copts")))
            for define in self.graph.get(target, "local_defines"):
                self.line('target_compile_definitions(%s PRIVATE "%s")', name, define)
        else:
            self.line("add_library(%s INTERFACE)", name)
        scope = "PUBLIC" if files else "INTERFACE"
        for define in self.graph.get(target, "defines"):
            self.line('target_compile_definitions(%s %s "%s")', name, scope, define)
        for folder in self.graph.get(target, "includes"):
            self.line('target_include_directories(%s SYSTEM %s "${ramet_root}/%s/%s")', name, scope, target.package, folder)
        links += [word for word in self.graph.get(target, "linkopts")]
        if links:
            self.line("target_link_libraries(%s %s %s)", name, scope, quoted(links))
        return name

    def whole(self, target):
        return bool(self.graph.get(target, "alwayslink", False))

    def program(self, target):
        """A cc_binary or cc_test: objects of what is linked whole, then the libraries."""
        name = self.name(target)
        if target.label in self.written:
            return name
        self.written.add(target.label)
        below = self.graph.closure([target])
        for library in below.values():
            if library is not target:
                self.library(library)
        files = self.graph.compiled(target)
        self.make(files)
        self.line("")
        whole = [t for t in below.values() if t is not target and self.whole(t) and self.graph.compiled(t)]
        objects = ["$<TARGET_OBJECTS:%s>" % self.name(t) for t in whole]
        self.line("add_executable(%s %s)", name, quoted([self.path(f) for f in files] + objects))
        folder = os.path.dirname("bin/" + (target.package + "/" if target.package else "") + target.name)
        self.line('ramet_program(%s "%s" "%s")', name, folder, os.path.basename(target.name))
        self.options_of(target, files)
        for define in self.graph.get(target, "local_defines"):
            self.line('target_compile_definitions(%s PRIVATE "%s")', name, define)
        libraries, seen = [], set()

        def add(t):
            ours, others = self.graph.dependencies(t)
            for below_it in ours:
                if self.whole(below_it):
                    if below_it.label not in seen:
                        seen.add(below_it.label)
                        add(below_it)
                else:
                    libraries.append(self.name(below_it))
            libraries.extend("ramet_external_" + external(label) for label in others)
            if t is target or self.whole(t):
                libraries.extend(self.graph.get(t, "linkopts"))

        add(target)
        self.line("target_link_libraries(%s PRIVATE %s)", name, quoted(dict.fromkeys(libraries)))
        return name

    # ---- components and tests ---------------------------------------------------------------------------

    def component(self, row):
        graph, name = self.graph, row.name
        named, own = graph.component(row)
        for target in named:
            self.library(target)
        archives = [t for t in own.values() if graph.compiled(t)]
        whole = [t for t in archives if self.whole(t)]
        self.line("")
        self.line("ramet_component(%s)", name)
        links = ["Ramet::" + need for need in graph.get(row, "needs")] or (["Ramet::ramet"] if name != "ramet" else [])
        links += ["$<LINK_ONLY:%s>" % self.name(t) for t in named]
        self.line("target_link_libraries(ramet_component_%s INTERFACE %s)", name, quoted(links))
        self.line("ramet_hides(%s %s)", name, quoted(self.name(t) for t in archives))
        for target in whole:
            self.line("ramet_linked_whole(%s %s)", name, self.name(target))
        headers = sorted({h for t in own.values() for h in graph.headers(t) if h.endswith(".h") and not h.startswith("tests/")})
        # Where Bazel has them: members of the installed archive are named so.
        files = {"%s/lib%s.a" % (t.package, t.name): self.archive(t) for t in archives}
        self.write("components/%s.json" % name, json.dumps({
            "name": name, "needs": graph.get(row, "needs"), "finds": graph.get(row, "finds"),
            "archives": sorted(files), "files": files, "whole": bool(whole), "headers": headers,
        }, indent=1) + "\n")  # fmt: skip

    def why_not(self, test, externals, gpus):
        """Why CMake does not make a test, or ""."""
        if test.kind == "sh_test":
            return "a script, which checks Bazel's outputs"
        program = self.graph.program(test)
        missing = [external(label) for label in self.graph.others([program]) if external(label) not in externals]
        if missing:
            return "links " + ", ".join(missing)
        below = self.graph.closure([program])
        if not gpus and "//kernels:cuda" in below or not gpus and "//tools/emulated_gpu:emulated_gpu" in below:
            return "uses GPUs"
        for label in self.graph.get(test, "data"):
            target = self.graph.workspace.target(label, test.package)
            if target and target.kind not in ("filegroup",):
                return "reads %s, which Bazel makes" % label
        return ""

    def tests(self, folders, externals, gpus, long):
        left_out, count, programs = {}, 0, {}
        for test in self.graph.tests(folders):
            why = self.why_not(test, externals, gpus)
            tags = self.graph.get(test, "tags")
            if not why and "takes_long" in tags and not long:
                why = "takes long (RAMET_LONG_TESTS=ON)"
            if why:
                left_out.setdefault(why, []).append(test.label)
                continue
            count += 1
            program = self.program(self.graph.program(test))
            programs.setdefault(test.package, {})[program] = None
            folder = "bin/" + (test.package + "/" if test.package else "")
            size = self.graph.get(test, "size", "") or "medium"
            environment = self.graph.get(test, "env", {}) or {}
            of = self.graph.program(test)
            link = os.path.relpath("bin/" + of.package + "/" + of.name, os.path.dirname(folder + test.name))
            self.line('ramet_test("%s" %s "%s" "%s" %d "%s" %s)', test.label[2:], program, folder + test.name, link if of is not test else "",
                      TIMEOUTS[size], ";".join([test.package] + tags), quoted("%s=%s" % e for e in environment.items()))  # fmt: skip
        for package, names in programs.items():
            self.line("add_custom_target(ramet_%s_all)", package.replace("/", "_"))
            self.line("add_dependencies(ramet_%s_all %s)", package.replace("/", "_"), " ".join(names))
        with open(self.out / "tests_left_out.txt", "w") as file:
            for why, labels in sorted(left_out.items()):
                file.write("%s:\n%s\n" % (why, "".join("  %s\n" % label for label in labels)))
        return count, sum(len(labels) for labels in left_out.values())


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("--root", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--variants", default="all", choices=["all", "base", "v3", "v4", "one"])
    parser.add_argument("--gpus", default="emulated", choices=["emulated", "cuda"])
    parser.add_argument("--component", action="append", default=[])
    parser.add_argument("--program", action="append", default=[])
    for flag in ("--tests", "--long-tests", "--host-fma", "--werror", "--not-gcc"):
        parser.add_argument(flag, action="store_true")
    given = parser.parse_args()
    graph = Graph(given.root, given.variants != "one", given.variants, given.gpus, given.host_fma)
    writer = Writer(graph, given.out, given.werror, not given.not_gcc)

    rows = graph.components()
    wanted = [r for r in rows if r != "ramet"] if given.component == ["all"] else given.component
    unknown = [name for name in wanted if name not in rows]
    if unknown:
        raise SystemExit("RAMET_COMPONENTS: got %s, expected all or some of %s" % (unknown[0], ", ".join(r for r in rows if r != "ramet")))
    chosen = []

    def choose(name):
        for need in graph.get(rows[name], "needs"):
            choose(need)
        if name not in chosen:
            chosen.append(name)

    for name in ["ramet"] + wanted:
        choose(name)
    roots = [t for name in chosen for t in graph.component(rows[name])[0]]
    programs = [graph.workspace.target(label) for label in given.program]
    if None in programs:
        raise SystemExit("RAMET_PROGRAMS: no such target: " + given.program[programs.index(None)])
    externals = {external(label) for label in graph.others(roots + programs)}
    writer.line("# Written by targets.py; %s", " ".join(chosen))
    externals |= set(FOR_TESTS) if given.tests else set()
    for repository in sorted(graph.workspace.repositories):
        writer.line('set(ramet_package_%s "%s")', repository, graph.workspace.repositories[repository]["package"])
    for name in sorted(externals):
        writer.line("ramet_find(%s)", name)
    for name in chosen:
        writer.component(rows[name])
    for program in programs:
        writer.program(program)
    counts = (0, 0)
    if given.tests:
        folders = [os.path.relpath(path, given.root) for top in TEST_FOLDERS for path, _, names in os.walk(os.path.join(given.root, top))
                   if "BUILD" in names and (top != "tests" or path == os.path.join(given.root, top))]  # fmt: skip
        counts = writer.tests(sorted(set(folders)), externals, "cuda" in chosen and given.gpus == "emulated", given.long_tests)
    writer.line('set(ramet_components "%s")', ";".join(chosen))
    writer.line("set(ramet_tests_made %d)\nset(ramet_tests_left_out %d)", *counts)
    # Configured again where one of these changes: files that come and go change their folders.
    read = sorted(set(graph.workspace.read))
    writer.line("set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS %s)", quoted(read))
    writer.write("targets.cmake", "\n".join(writer.lines) + "\n")


if __name__ == "__main__":
    main()
