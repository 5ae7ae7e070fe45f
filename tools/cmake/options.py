"""The compiler's options that .bazelrc gives every build: of all files, and by their paths."""

import re


def split(text):
    return [word for word in text.split(",") if word]


class Options:
    """Of .bazelrc's lines for `build` without a configuration."""

    def __init__(self, path):
        self.all, self.by_path = [], []
        for line in path.read_text().splitlines():
            words = line.split()
            if words[:1] != ["build"]:
                continue
            for word in words[1:]:
                name, _, value = word.partition("=")
                if name in ("--copt", "--cxxopt"):
                    self.all.append(value)
                elif name == "--per_file_copt":
                    paths, _, options = value.partition("@")
                    takes = [re.compile(p) for p in split(paths) if not p.startswith("-")]
                    leaves = [re.compile(p[1:]) for p in split(paths) if p.startswith("-")]
                    self.by_path.append((takes, leaves, split(options)))

    def of(self, path):
        """Those of one file: a path from the root, which begins with bazel-out/bin/ where Bazel writes the file."""
        return [
            option
            for takes, leaves, options in self.by_path
            if any(p.search(path) for p in takes) and not any(p.search(path) for p in leaves)
            for option in options
        ]
