"""Contracts as Doxygen's markup: what they say is shown as it stands."""

import html
import pathlib
import re

ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
NOTHING = "<span></span>"  # Doxygen shows nothing that has no comment
ITEM = re.compile(r"^ {0,2}(-|\d+\.) +(?=\S)")
CODE = re.compile(r"`([^`\n]+)`")


def escaped(text):
    """Words that Doxygen shall show as they are."""
    text = re.sub(r"([\\@#%$])", r"\\\1", html.escape(text, quote=False)).replace('"', "&quot;")
    text = re.sub(r"(?<![\w])::", r"\::", text)
    return re.sub(r"-(?=-)|\*(?=/)|/(?=\*)|\b(?!https?:)\w+:(?=//)", r"\g<0><span></span>", text)


def inline(text):
    """The same, words in backquotes as code."""
    text = "".join("<code>%s</code>" % escaped(p) if i % 2 else escaped(p) for i, p in enumerate(CODE.split(text)))
    return "\\" + text if text.startswith("-") else text


def formatted(text):
    """A contract as Doxygen's markup: paragraphs, lists, and what is indented as it stands."""
    out, block = [], []

    def flush():
        lines = [line.strip() for line in block]
        if not block:
            return
        if ITEM.match(block[0]):
            items = []
            for line in lines:
                if ITEM.match(line):
                    items.append(ITEM.sub("", line))
                else:
                    items[-1] += " " + line
            out.append("<ul>\n%s\n</ul>" % "\n".join("<li>%s</li>" % inline(i) for i in items))
        elif block[0].startswith("  "):
            out.append("@verbatim\n%s\n@endverbatim" % "\n".join(block).replace("*/", "* /").replace("/*", "/ *"))
        else:
            out.append(inline(" ".join(lines)))
        block.clear()

    for line in text.split("\n"):
        if not line.strip():
            flush()
            continue
        starts = ITEM.match(line)
        in_list = block and ITEM.match(block[0])
        if block and (starts and not in_list or not starts and (
                in_list and not line.startswith("  ") or not in_list and block[0].startswith("  ") != line.startswith("  "))):
            flush()
        block.append(line)
    flush()
    return "\n\n".join(out)


def first_sentence(text):
    text = " ".join(text.split())
    match = re.match(r"(.*?(?:;|[.](?= [A-Z`(\[]|$)))", text)
    return (match.group(1) if match else text).rstrip(".:;")


def header_comment(path):
    lines = []
    for line in (ROOT / path).read_text().split("\n"):
        if line.startswith(("//", "!", "# ")):
            lines.append(re.sub(r"^(//|!|#) ?", "", line))
        elif line.startswith('"""') and not lines:
            lines.append(line.strip('"'))
        elif line.startswith(("/*", " *")) and (lines or line.startswith("/*")):
            lines.append(re.sub(r"^/?\*+/? ?|^ \*/? ?", "", line))
        else:
            break
    return "\n".join(lines)
