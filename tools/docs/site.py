"""Makes the reference pages: one folder that opens from a file without a network.

    tools/docs/site.py OUT [--recordings FOLDER]     (./tools/make_docs calls it)

pages.py writes what Doxygen reads, and Doxygen writes the pages. The search box finds the names of Doxygen's list. A
warning of Doxygen's is an error. FOLDER: of the explorer's pages that the tutorial's chapters show (tutorial/build.py).
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))

import check_site  # noqa: E402
import pages  # noqa: E402

# (text in Doxygen's own layout, text that replaces it). With these, a description comes before the lists, and no page has a
# separate list of inherited members.
LAYOUT = [
    (r'<tab type="modules" visible="yes" title="" intro=""/>', '<tab type="modules" visible="yes" title="All headers, by family" intro="Each header is a page."/>'),
    (r'<allmemberslink visible="yes"/>', '<allmemberslink visible="no"/>'),
    (r"(?s)(<class>\n.*?)(    <memberdecl>.*?</memberdecl>\n)(    <detaileddescription title=\"\"/>\n)", r"\1\3\2"),
    (r"(?s)(<group>\n.*?)(    <memberdecl>.*?</memberdecl>\n)(    <detaileddescription title=\"\"/>\n)", r"\1\3\2"),
]


def layout(work):
    subprocess.run(["doxygen", "-l", "layout.xml"], cwd=work, check=True, stdout=subprocess.DEVNULL)
    text = (work / "layout.xml").read_text()
    for old, new in LAYOUT:
        text, count = re.subn(old, new, text)
        if not count:
            sys.exit("docs: this Doxygen's layout has no %s" % old)
    (work / "layout.xml").write_text(text)


def names(tags, known):
    """[[name, kind, url]] of what Doxygen's tag file lists; `known`: the names that declarations.py has read."""
    found = {}
    for compound in xml.etree.ElementTree.parse(tags).getroot():
        kind, space = compound.get("kind"), re.sub(r" ?<.*?>(?=::|$)", "", compound.findtext("name"))
        file = compound.findtext("filename")
        if kind in ("class", "struct", "union"):
            found.setdefault(space, [space, kind, file])
        if kind in ("class", "struct", "union", "namespace", "group", "file"):
            for member in compound.findall("member"):
                if not member.findtext("anchorfile"):
                    continue
                full = member.findtext("name")
                if kind in ("class", "struct", "union", "namespace"):
                    full = "%s::%s" % (space, full)
                elif member.get("kind") not in ("define", "function", "typedef", "enumeration") or full in found:
                    continue
                elif kind == "group" and not full.startswith(("ramet_", "RAMET_")):
                    continue  # the namespace has it
                url = "%s#%s" % (member.findtext("anchorfile"), member.findtext("anchor"))
                found.setdefault(full, [full, member.get("kind"), url])
                for value in member.findall("enumvalue"):
                    inside = "%s::%s" % (full, value.text)
                    value = inside if inside in known else "::".join(full.split("::")[:-1] + [value.text])
                    found.setdefault(value, [value, "value", url])
    for full in known:  # a member that Doxygen does not see: its class's page
        owner = full.rpartition("::")[0]
        if full not in found and owner in found:
            found[full] = [full, "member", found[owner][2]]
    return [[full[len("ramet::"):] if full.startswith("ramet::") else full, kind, url] for full, kind, url in sorted(found.values())]


def doxygen(work, site):
    settings = (HERE / "Doxyfile").read_text() + "\n".join([
        "INPUT = %s %s %s" % (work / "headers", work / "pages.dox", HERE / "index.dox"),
        "EXAMPLE_PATH = %s" % (work / "examples"), "STRIP_FROM_PATH = %s" % (work / "headers"), "OUTPUT_DIRECTORY = %s" % site,
        "LAYOUT_FILE = %s" % (work / "layout.xml"), "GENERATE_TAGFILE = %s" % (work / "tags.xml"),
        "HTML_HEADER = %s" % (work / "header.html"), "HTML_FOOTER = %s" % (HERE / "footer.html"),
        "HTML_EXTRA_STYLESHEET = %s %s" % (HERE / "style.css", HERE / "reference.css"), "HTML_EXTRA_FILES = %s" % (HERE / "find.js"), ""])  # yapf: disable
    (work / "Doxyfile").write_text(settings)
    run = subprocess.run(["doxygen", "Doxyfile"], cwd=work, capture_output=True, text=True)
    warnings = [line for line in (run.stdout + run.stderr).splitlines() if line.strip()]
    for line in warnings:
        print(line.replace(str(work) + "/", ""), file=sys.stderr)
    return run.returncode == 0 and not warnings


def main(arguments):
    out = pathlib.Path(arguments[0]).absolute()
    with tempfile.TemporaryDirectory() as folder:
        work, site = pathlib.Path(folder), pathlib.Path(folder) / "site"
        site.mkdir()
        writer = pages.Writer(work)
        count, headers = writer.write()
        layout(work)
        tutorial = HERE / "tutorial/build.py"
        link = '<a href="$relpath^tutorial/index.html">Tutorial</a>' if tutorial.exists() else ""
        (work / "header.html").write_text((HERE / "header.html").read_text().replace("<!--TUTORIAL-->", link))
        good = doxygen(work, site)
        listed = names(work / "tags.xml", sorted(writer.book.names()))
        (site / "names.js").write_text("window.ramet_names=%s;\n" % json.dumps(listed, separators=(",", ":")).replace("],[", "],\n["))
        if tutorial.exists():
            good = subprocess.run([sys.executable, str(tutorial), str(site / "tutorial")] + arguments[1:]).returncode == 0 and good
        problems = check_site.problems(site)
        print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
        if not good or problems:
            return 1
        if out.exists():
            shutil.rmtree(out)
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(site, out)
    size = sum(p.stat().st_size for p in out.rglob("*") if p.is_file())
    print("docs: %d names of %d headers, %d in the search box, %.0f MB" % (count, headers, len(listed), size / 1e6))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
