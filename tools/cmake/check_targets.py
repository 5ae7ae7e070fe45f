#!/usr/bin/env python3
"""Compares what build_files.py reads with what Bazel reads, target by target: a step of ./tools/test.

usage: bazel query 'kind(rule, //...)' --output=xml | check_targets.py

A difference is a mistake of build_files.py: nothing has to be kept up to date by hand. select() counts with all of its values.
"""

import collections
import pathlib
import sys
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))
from build_files import Select, Sum, split_label  # noqa: E402
from graph import Graph  # noqa: E402

KINDS = {
    "cc_library": "cc_library", "cc_binary": "cc_binary", "cc_test": "cc_test", "genrule": "genrule", "filegroup": "filegroup",
    "_joined_source": "_joined_source_impl", "_program_of_file_test": "_program_of_file_impl", "_host_sources": "_host_sources_impl",
    "_nvcc_objects": "_nvcc_objects_impl", "_precompiled_header": "_precompiled_header_impl", "_sdk_component": "_sdk_component_impl",
}  # fmt: skip
LABELS = ("srcs", "hdrs", "deps", "data", "libraries", "without", "program", "tools")
WORDS = ("copts", "defines", "local_defines", "includes", "linkopts", "outs", "cmd", "needs", "finds", "headers", "own_headers", "begin", "alwayslink", "tags")
# What a machine's processor and toolkit decide (tools/cuda/configure.bzl).
OF_THE_MACHINE = ("-mfma", "--compress-mode=size", "--Ofast-compile=mid")


def all_values(value):
    """Each of a value's parts once, in its order."""
    if isinstance(value, Sum):
        found = [word for part in value.parts for word in all_values(part)]
    elif isinstance(value, Select):
        found = [word for case in value.cases.values() for word in all_values(case)]
    elif isinstance(value, (list, tuple)):
        found = list(value)
    else:
        found = [] if value is None else [value]
    return list(dict.fromkeys(found))


def full(label, package):
    if label.startswith("@"):
        return label if "//" in label else "%s//:%s" % (label, label[1:])
    return "//%s:%s" % split_label(label, package)


def ours(target):
    found = {}
    for name in LABELS + WORDS:
        values = all_values(target.attributes.get(name))
        if name in LABELS:
            values = [full(v, target.package) for v in values]
        elif name == "outs":
            values = [full(v, target.package) for v in values]
        found[name] = [str(v).lower() if isinstance(v, bool) else v for v in values]
    return found


def bazels(rule):
    found = collections.defaultdict(list)
    for attribute in rule:
        name = attribute.get("name")
        if name in LABELS + WORDS:
            values = [attribute.get("value")] if attribute.get("value") is not None else [v.get("value") for v in attribute]
            found[name] = list(dict.fromkeys(v for v in values if v not in OF_THE_MACHINE))
    return found


def differences(graph, rules):
    """(targets compared, what is wrong): `rules` are (class, label, {attribute: values}) of Bazel."""
    seen, wrong = collections.defaultdict(set), []
    for kind, label, there in rules:
        package, _, name = label[2:].partition(":")
        seen[package].add(name)
        target = graph.workspace.package(package).get(name)
        if target is None or target.kind != KINDS[kind]:
            wrong.append("%s: Bazel has it" % label)
            continue
        here = ours(target)
        for attribute in LABELS + WORDS:
            # The order of what select() gives depends on the configuration.
            if sorted(here[attribute]) != sorted(there[attribute]):
                only = sorted(set(here[attribute]) - set(there[attribute])), sorted(set(there[attribute]) - set(here[attribute]))
                wrong.append("%s: %s: here alone: %s; in Bazel alone: %s" % (label, attribute, *only))
            elif kind == "_joined_source" and here[attribute] != there[attribute]:
                wrong.append("%s: %s: in another order than Bazel's" % (label, attribute))
    for package, names in seen.items():
        for name, target in graph.workspace.package(package).items():
            if target.kind in KINDS.values() and name not in names:
                wrong.append("//%s:%s: Bazel has no such target" % (package, name))
    return len(rules), wrong


def main():
    graph = Graph(str(HERE.parent.parent), gpus="cuda")
    rules = [
        (rule.get("class"), rule.get("name"), bazels(rule))
        for rule in xml.etree.ElementTree.parse(sys.stdin).getroot().iter("rule")
        if rule.get("class") in KINDS and rule.get("name").startswith("//")
    ]
    count, wrong = differences(graph, rules)
    # A source that one of the two forgets is noticed.
    planted = [(kind, label, dict(found, srcs=found["srcs"][1:]) if label == "//nn:nn" else found) for kind, label, found in rules]
    if len(differences(graph, [(k, l, collections.defaultdict(list, f)) for k, l, f in planted])[1]) != len(wrong) + 1:
        wrong.append("//nn:nn: a source fewer is not noticed")
    print("\n".join(wrong[:40] + ["%d targets compared, %d differences" % (count, len(wrong))]))
    return 0 if count > 1000 and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
