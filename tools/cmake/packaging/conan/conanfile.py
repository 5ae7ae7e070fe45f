"""Ramet for Conan 2, from this tree: conan create tools/cmake/packaging/conan --build=missing

The libraries that it needs come from Conan's index, or with -o ramet/*:system=True from the machine's packages.
"""

import os
import re

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain
from conan.tools.files import copy, load

COMPONENTS = ("processes", "formats", "script", "ledger", "see", "c", "c_processes", "c_script")
# Conan's name, Debian's package, and the component that needs it ("" is the core).
LIBRARIES = (
    ("eigen/3.4.0", "libeigen3-dev", ""), ("nlohmann_json/3.11.3", "nlohmann-json3-dev", ""), ("xxhash/0.8.2", "libxxhash-dev", ""),
    ("zlib/[>=1.2.11 <2]", "zlib1g-dev", ""), ("libzip/1.10.1", "libzip-dev", "formats"), (None, "libgloo-dev", "processes"),
    ("cairo/1.18.0", "libcairo2-dev", "see"), ("elfutils/0.190", "libdw-dev", "see"), (None, "node-d3-zoom", "see"), (None, "node-d3-array", "see"),
)  # fmt: skip
NEEDS = {"script": ("formats",), "c_processes": ("processes", "c"), "c_script": ("script", "formats", "c")}
UP = os.path.join(*[os.pardir] * 4)  # from here to the tree's root


class Ramet(ConanFile):
    name = "ramet"
    description = "A small deep-learning runtime: tensors, autograd, modules, data-parallel training"
    license = "Apache-2.0"
    topics = ("deep-learning", "autograd", "tensor")
    package_type = "static-library"
    settings = "os", "arch", "compiler", "build_type"
    options = dict({"variants": ["all", "native", "base", "v3", "v4"], "system": [True, False]}, **{c: [True, False] for c in COMPONENTS})
    default_options = dict({"variants": "all", "system": False}, **{c: False for c in COMPONENTS})

    def layout(self):
        self.folders.root = UP
        self.folders.source = "."
        self.folders.build = "build/conan"
        self.folders.generators = "build/conan/generators"

    def _root(self):
        return os.path.abspath(os.path.join(self.recipe_folder, UP))

    def set_version(self):
        text = load(self, os.path.join(self._root(), "runtime/base/version.h"))
        self.version = ".".join(re.search(r"#define RAMET_VERSION_%s (\d+)" % part, text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))

    def export_sources(self):
        for pattern in ("*.h", "BUILD", ".bazelrc", "LICENSE"):
            copy(self, pattern, self._root(), self.export_sources_folder, excludes=("*/*",))
        for folder in ("runtime", "kernels", "autograd", "nn", "parallel", "tools"):
            copy(self, folder + "/*", self._root(), self.export_sources_folder, excludes=("*__pycache__*",))

    def _chosen(self):
        chosen = [c for c in COMPONENTS if self.options.get_safe(c)]
        return [c for c in COMPONENTS if c in chosen or any(c in NEEDS.get(other, ()) for other in chosen)]

    def _libraries(self):
        return [row for row in LIBRARIES if row[2] in ["", *self._chosen()]]

    def validate(self):
        if self.settings.os != "Linux":
            raise Exception("ramet: got os=%s, expected Linux" % self.settings.os)
        missing = [debian for conan, debian, _ in self._libraries() if conan is None]
        if missing and not self.options.system:
            raise Exception("ramet: Conan has no package of %s: -o ramet/*:system=True takes the machine's" % ", ".join(missing))

    def requirements(self):
        if not self.options.system:
            for conan, _, _ in self._libraries():
                if conan:
                    self.requires(conan)

    def system_requirements(self):
        if self.options.system:
            from conan.tools.system.package_manager import Apt

            Apt(self).install([debian for _, debian, _ in self._libraries()], check=True)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["RAMET_VARIANTS"] = str(self.options.variants)
        toolchain.cache_variables["RAMET_COMPONENTS"] = ";".join(self._chosen())
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure(build_script_folder="tools/cmake")
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        # The tree has a CMake package of its own: find_package(Ramet) and Ramet::<component>.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["lib/cmake/Ramet"]
        self.cpp_info.libs = ["ramet_" + c for c in reversed(self._chosen())] + ["ramet"]
        self.cpp_info.system_libs = ["m", "pthread", "dl"] + (["z"] if self.options.system else [])
