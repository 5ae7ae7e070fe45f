#!/usr/bin/env python3
"""Counts what Bazel test runs really did, and prints `N passed, N failed` as the last line.

usage: test_results.py [--passed NAME]... [--failed NAME]... RUN=EXIT_CODE=EVENTS.json...
       test_results.py --keep EVENTS.json    copies the test.xml files beside EVENTS.json, which names the copies from
                                             then on: another run in the same output folder writes over them

Each run is Bazel's exit code and its build event file. The cases are read from the test.xml files that the events name:
files of earlier runs are never looked at. A test program that ends badly without a failed case in its file (a crash, a
time-out, a sanitizer's report at exit) counts as one failure, as does a target that does not build. Skipped and disabled
cases are counted apart. --passed and --failed add single checks.
"""

import argparse
import collections
import json
import pathlib
import shutil
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

# Bazel's exit codes that the events explain: success, a failed build, failed tests, no tests found.
EXPLAINED = (0, 1, 3, 4)

Case = collections.namedtuple("Case", "run label name outcome")  # outcome: passed, failed or skipped


def local_path(uri):
    return urllib.parse.unquote(urllib.parse.urlparse(uri).path)


def cases_of_xml(path):
    """(name, outcome) of each case in a GoogleTest or Bazel test.xml."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError):
        return
    for suite in root.iter("testsuite"):
        for case in suite.findall("testcase"):
            name = "%s.%s" % (case.get("classname") or suite.get("name"), case.get("name"))
            if case.find("failure") is not None or case.find("error") is not None:
                yield name, "failed"
            elif case.get("status") == "notrun" or case.get("result") in ("skipped", "suppressed"):
                yield name, "skipped"
            else:
                yield name, "passed"


def events_of(events_file):
    try:
        with open(events_file) as lines:
            return [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError):
        return []


def keep(events_file):
    events = events_of(events_file)
    copies = 0
    for event in events:
        for output in event.get("testResult", {}).get("testActionOutput", []):
            source = pathlib.Path(local_path(output["uri"]))
            if output["name"] != "test.xml" or not source.is_file():
                continue
            copy = pathlib.Path("%s.%d.xml" % (events_file, copies)).resolve()
            copies += 1
            shutil.copyfile(source, copy)
            output["uri"] = copy.as_uri()
    if copies:
        pathlib.Path(events_file).write_text("".join(json.dumps(event) + "\n" for event in events))


def cases_of_run(run, code, events_file):
    """Every case of one Bazel run."""
    cases = []
    tested = set()
    unbuilt = set()
    events = events_of(events_file)
    for event in events:
        kind = event["id"]
        if "testResult" in kind and "testResult" in event:
            label = kind["testResult"]["label"]
            result = event["testResult"]
            tested.add(label)
            found = []
            for output in result.get("testActionOutput", []):
                if output["name"] == "test.xml":
                    found += cases_of_xml(local_path(output["uri"]))
            status = result.get("status", "NO_STATUS")
            if status not in ("PASSED", "FLAKY") and not any(o == "failed" for _, o in found):
                found.append((status, "failed"))
            if status in ("PASSED", "FLAKY") and not found:
                found.append(("no cases in test.xml", "failed"))
            cases += [Case(run, label, name, outcome) for name, outcome in found]
        elif "targetCompleted" in kind:
            if not event.get("completed", {}).get("success", False):
                if event.get("aborted", {}).get("reason") != "SKIPPED":
                    unbuilt.add(kind["targetCompleted"]["label"])
    broken = sorted(unbuilt - tested)
    cases += [Case(run, label, "did not build", "failed") for label in broken]
    explained = code in EXPLAINED and events
    if not explained or (code in (1, 3) and not any(c.outcome == "failed" for c in cases)):
        cases.append(Case(run, "bazel", "exit code %d" % code, "failed"))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passed", action="append", default=[])
    parser.add_argument("--failed", action="append", default=[])
    parser.add_argument("--keep")
    parser.add_argument("runs", nargs="*")
    arguments = parser.parse_args()
    if arguments.keep:
        return keep(arguments.keep)

    cases = []
    for run in arguments.runs:
        name, code, events = run.split("=", 2)
        found = cases_of_run(name, int(code), events)
        count = collections.Counter(case.outcome for case in found)
        text = "%s: %d passed, %d failed" % (name, count["passed"], count["failed"])
        if count["skipped"]:
            text += ", %d skipped" % count["skipped"]
        print(text + ("" if found else " (no test matches)"))
        cases += found
    ran = len(cases)
    cases += [Case("tree", "", name, "passed") for name in arguments.passed]
    cases += [Case("tree", "", name, "failed") for name in arguments.failed]

    for case in cases:
        if case.outcome == "failed":
            print("FAILED: %s: %s %s" % case[:3])
    count = collections.Counter(case.outcome for case in cases)
    if not ran:
        print("FAILED: no test ran")
    if count["skipped"]:
        print("%d skipped" % count["skipped"])
    print("%d passed, %d failed" % (count["passed"], count["failed"]))
    return 0 if ran and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
