"""Which headers a program may include, and how these include each other where they are installed.

In the repository a header is named from its root: "nn/optim/adam.h". Installed, that is include/ramet/nn/optim/adam.h, and its
name "ramet/nn/optim/adam.h": a program that has a folder nn of its own gets what it asks for. <ramet.h> is the umbrella.
"""

import hashlib
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).absolute().parent.parent))
import check_layers  # noqa: E402

INCLUDE = re.compile(r'^([ \t]*#[ \t]*include[ \t]*)"([^"\n]+)"', flags=re.M)
COMPAT = check_layers.COMPAT
SEE, LEDGER = "tools/see/", "tools/ledger/"
# Headers with another name in the installed tree.
NAMES = {
    "ramet.h": "ramet.h",
    "nn/c/c.h": "ramet/c.h",
    "nn/c_script/c_script.h": "ramet/c_script.h",
    "nn/script/script.h": "ramet/script.h",
    "parallel/c/c_processes.h": "ramet/c_processes.h",
    SEE + "see.h": "ramet/see.h",
}
LOWEST = "runtime/base/error.h"  # where the check of the installation stands: every other header includes it


def public(root, listed, lower=()):
    """The public ones among the headers that are `listed`, and those of ours that they include, without those in `lower`."""
    todo = [h for h in listed if h.endswith(".h") and not check_layers.is_internal(h)]
    todo = [h for h in todo if h.startswith(check_layers.PUBLIC + ("ramet.h", SEE + "see.h", LEDGER + "ledger.h")) and not h.startswith(check_layers.CUDA)]
    seen = set(todo)
    while todo:
        for _, name in INCLUDE.findall((root / todo.pop()).read_text()):
            if name not in seen and (root / name).is_file():
                seen.add(name)
                todo.append(name)
    return sorted(seen - set(lower))


def installed_name(header):
    return NAMES.get(header, "ramet/" + (header[len("tools/"):] if header.startswith((SEE, LEDGER)) else header))


def rewritten(root, text):
    """The text of a file whose includes of ours have the names that they have where they are installed."""

    def renamed(match):
        name = match.group(2)
        return '%s"%s"' % (match.group(1), installed_name(name) if (root / name).is_file() else name)

    return INCLUDE.sub(renamed, text)


def compat(root):
    """{installed name: text} of the compatibility headers. Ramet's own are found as ramet/compat/..., LibTorch's names with one more -I."""
    texts = {}
    made = set(names_py(root, "--paths").split())
    with tempfile.TemporaryDirectory() as folder:
        names_py(root, "--lists", folder)
        names_py(root, "--forwarding", folder)
        for include in (root / COMPAT, pathlib.Path(folder)):
            for path in sorted(include.rglob("*.h*")):
                name = str(path.relative_to(include))
                # A clone may have old ones of those that are made.
                if include != root / COMPAT or name not in made:
                    texts[name if name.startswith("ramet/") else "ramet/libtorch/" + name] = rewritten(root, path.read_text())
    return texts


def names_py(root, *arguments):
    """What tools/compat/names.py prints."""
    command = [sys.executable, root / "tools/compat/names.py", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def digest(texts):
    """Eight hexadecimal digits that are others for other headers."""
    whole = hashlib.sha256()
    for name in sorted(texts):
        whole.update(name.encode() + b"\0" + texts[name].encode() + b"\0")
    return whole.hexdigest()[:8]
