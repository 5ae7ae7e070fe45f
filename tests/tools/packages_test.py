#!/usr/bin/env python3
"""tools/packages.txt, what tools/setup.sh does with it on each distribution, and the container files.

Each distribution's programs are stand-ins here, which note what they were called with; nothing is installed.
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

WORK = pathlib.Path(os.environ["TEST_TMPDIR"])
SYSTEMS = ("debian", "fedora", "arch", "alpine")
GROUPS = ("build", "bazel", "cmake", "test", "arm64", "wasm", "see", "train", "openblas", "mpi", "docs", "page", "beside")
CONTAINERS = {
    "debian-12": ("debian", "apt-get install -y --no-install-recommends", ("build", "bazel", "train")),
    "ubuntu-22.04": ("debian", "apt-get install -y --no-install-recommends", ("build", "cmake", "train")),
    "ubuntu-24.04": ("debian", "apt-get install -y --no-install-recommends", ("build", "cmake", "train")),
    "fedora": ("fedora", "dnf install -y --setopt=install_weak_deps=False", ("build", "cmake", "train")),
    "arch": ("arch", "pacman -Syu --needed --noconfirm", ("build", "cmake", "train")),
    "alpine": ("alpine", "apk add --no-cache", ("build", "cmake", "train")),
}
STAND_IN = """#!/bin/bash
echo "$(basename "$0") $*" >>"%(work)s/called"
case "$(basename "$0") $1" in
  "rpm -q" | "apk info") grep -qx -e "${@: -1}" "%(work)s/installed" ;;
  "pacman -T") printf '%%s\\n' "${@:2}" | grep -vxf "%(work)s/installed" ;;
  "dnf install" | "apk add" | "pacman -Syu") printf '%%s\\n' "${@:2}" >>"%(work)s/installed" ;;
esac
"""


def rows():
    lines = pathlib.Path("tools/packages.txt").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def names(system, groups):
    column = 1 + SYSTEMS.index(system)
    return sorted({row[column] for row in rows() if row[0] in groups and row[column] != "-"})


class Packages(unittest.TestCase):
    def test_each_row_is_one_need(self):
        for row in rows():
            self.assertEqual(len(row), 5, row)
            self.assertIn(row[0], GROUPS)
            self.assertNotEqual(set(row[1:]), {"-"}, row)
            for name in row[1:]:
                self.assertRegex(name, r"^(-|[a-z0-9][a-z0-9+.-]*(:arm64)?)$")
        for group in GROUPS:
            for column, system in enumerate(SYSTEMS, 1):
                given = [row[column] for row in rows() if row[0] == group and row[column] != "-"]
                self.assertEqual(len(given), len(set(given)), (group, system))

    def test_core_is_there_on_every_system(self):
        counts = {system: len(names(system, ("build", "cmake"))) for system in SYSTEMS}
        for system in SYSTEMS[1:]:
            # Without Gloo and two packages of d3.
            self.assertGreaterEqual(counts[system], counts["debian"] - 3, system)

    def test_bazels_repositories_are_in_it(self):
        text = pathlib.Path("tools/bazel/repositories.bzl").read_text()
        packages = " and ".join(re.findall(r'package = "([^"]+)"', text)).split(" and ")
        # Google's benchmark is for a comparison that is made by hand.
        self.assertEqual(set(packages) - set(names("debian", GROUPS)), {"libbenchmark-dev"})

    def test_debians_names_are_known_to_apt(self):
        try:
            known = subprocess.run(["apt-cache", "pkgnames"], stdout=subprocess.PIPE, universal_newlines=True).stdout.split()
        except FileNotFoundError:
            known = []
        if "libcli11-dev" not in known or "ID=debian" not in pathlib.Path("/etc/os-release").read_text().split():
            self.skipTest("no list of Debian's packages")
        wanted = {name.split(":")[0] for name in names("debian", GROUPS)}
        self.assertEqual(wanted - set(known), set())


class Setup(unittest.TestCase):
    def setUp(self):
        self.bin = WORK / "bin"
        self.bin.mkdir(exist_ok=True)
        for name in ("dnf", "rpm", "pacman", "apk", "apt-get"):
            (self.bin / name).write_text(STAND_IN % {"work": WORK})
            (self.bin / name).chmod(0o755)
        (self.bin / "sudo").write_text('#!/bin/bash\nexec "$@"\n')
        (self.bin / "sudo").chmod(0o755)
        (WORK / "installed").write_text("python3\npython\n")
        (WORK / "called").write_text("")

    def call(self, identity, command):
        (WORK / "os-release").write_text(identity)
        environment = dict(os.environ, PATH="%s:/usr/bin:/bin" % self.bin, RAMET_OS_RELEASE=str(WORK / "os-release"), RAMET_BAZEL="none")
        result = subprocess.run(["bash", "-c", command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        return result.returncode, result.stdout

    def test_installs_what_is_missing(self):
        for identity, system, command in (
            ("ID=fedora\n", "fedora", "dnf install -y "),
            ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "fedora", "dnf install -y "),
            ("ID=arch\n", "arch", "pacman -Syu --needed --noconfirm "),
            ("ID=alpine\n", "alpine", "apk add -U "),
        ):
            self.setUp()
            code, output = self.call(identity, "tools/setup.sh build")
            self.assertEqual(code, 0, output)
            calls = [line for line in (WORK / "called").read_text().splitlines() if line.startswith(command)]
            self.assertEqual(len(calls), 1, output)
            expected = set(names(system, ("build", "cmake"))) - {"python3", "python"}
            self.assertEqual(set(calls[0][len(command):].split()), expected)
            self.assertNotIn("apt-get", (WORK / "called").read_text())
            # The second time nothing is missing.
            (WORK / "called").write_text("")
            code, output = self.call(identity, "tools/setup.sh build")
            self.assertEqual(code, 0, output)
            self.assertNotIn(command, (WORK / "called").read_text())

    def test_ubuntu_has_debians_names_and_cmake(self):
        code, output = self.call('ID=ubuntu\nID_LIKE=debian\n', "source tools/setup.sh; ramet_packages build")
        self.assertEqual((code, sorted(output.split())), (0, names("debian", ("build", "cmake"))))
        # Debian has the Bazel that is wanted.
        text = "unset RAMET_BAZEL; export RAMET_BAZEL=no-such-bazel; source tools/setup.sh; ramet_packages build"
        code, output = self.call("ID=debian\n", text)
        self.assertEqual((code, sorted(output.split())), (0, names("debian", ("build", "bazel"))))
        code, output = self.call("ID=ubuntu\n", text)
        self.assertEqual((code, sorted(output.split())), (0, names("debian", ("build", "cmake"))))

    def test_unknown_system_says_what_is_needed(self):
        environment = "PATH=%s/few; " % WORK
        few = WORK / "few"
        few.mkdir(exist_ok=True)
        for name in ("bash", "sed", "awk", "grep", "tr", "id", "dirname", "pwd", "mkdir", "cat", "sort", "readlink"):
            path = "/usr/bin/" + name
            if os.path.exists(path) and not (few / name).exists():
                (few / name).symlink_to(path)
        code, output = self.call("ID=plan9\n", environment + "source tools/setup.sh; ramet_need build")
        self.assertEqual(code, 1)
        self.assertIn("no names of packages are known", output)
        for name in names("debian", ("build", "cmake")):
            self.assertIn(name, output)

    def test_home_that_is_missing_is_replaced(self):
        command = "export HOME=/no/such/folder TMPDIR=%s; source tools/setup.sh; ramet_home; cd \"$HOME\"; pwd" % WORK
        code, output = self.call("ID=fedora\n", command)
        self.assertEqual((code, output), (0, "%s/ramet-%d\n" % (WORK, os.getuid())))

    def test_needs_bazel_says_so(self):
        code, output = self.call("ID=fedora\n", "source tools/setup.sh; ramet_bazel build //:ramet")
        self.assertEqual(code, 1)
        self.assertIn("this needs Bazel 4.2", output)


class Containers(unittest.TestCase):
    def test_each_installs_the_tables_names(self):
        files = sorted(pathlib.Path("tools/containers").glob("*.containerfile"))
        self.assertEqual([f.stem for f in files], sorted(CONTAINERS))
        for file in files:
            system, command, groups = CONTAINERS[file.stem]
            text = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", file.read_text()))
            lines = [line for line in text.splitlines() if line.strip()]
            self.assertEqual([line.split()[0] for line in lines], ["FROM", "RUN", "RUN", "COPY", "USER", "WORKDIR", "RUN"], file)
            self.assertRegex(lines[0], r"^FROM (debian|ubuntu|fedora|archlinux|alpine):[a-z0-9.-]+$")
            steps = [step.split() for step in lines[1].split("&&")]
            (step,) = [s for s in steps if " ".join(command.split()) in " ".join(s)]
            given = step[step.index(command.split()[-1]) + 1:]
            self.assertEqual(sorted(given), names(system, groups), file)
            self.assertIn("docker build -f %s " % file, file.read_text())
            self.assertTrue(lines[-1].startswith("RUN ./tools/train "), file)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
