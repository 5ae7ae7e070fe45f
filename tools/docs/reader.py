"""Reads declarations with their comments and options, from lines of headers in which macros are spelled out (declarations.py)."""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compat"))
import cxx  # noqa: E402

SECTION = re.compile(r"^(?://|/\*) -{2,} ?(.*?) ?-{2,}(?: \*/)?$")
C_HEADERS = ("nn/c/", "nn/c_script/", "parallel/c/")  # their comments are C's
# An option as RAMET_ARG spells it out (nn/module/arg.h).
OPTION = re.compile(
    r"public: auto (\w+)\((.*?) new_\1\) ?-> ?decltype\(\*this\) \{ this->\1_ = static_cast<.*?&&>\(new_\1\); return \*this; \}"
    r" const .*?& \1\(\) const noexcept \{ return this->\1_; \} .*?& \1\(\) noexcept \{ return this->\1_; \}\s*private: .*? \1_([^;]*);"
)


class Reader(cxx.Reader):
    """Each entry's `comment` is what stands at it (contracts.py says what else counts), `section` the heading above it."""

    def __init__(self, lines):
        self.doc, self.doc_row, self.row_doc = "", -1, None
        self.block, self.block_row = "", -1  # a comment that ends with a colon holds for what follows
        self.sections = [""]
        self.plain, self.plain_row = "", -1  # a comment of another kind: what it says of the member under it counts
        super().__init__(lines)

    def prepared(self, text):
        return OPTION.sub(r"public: RAMET_OPTION \2 \1 \3; private:", super().prepared(text))

    def here(self):
        """Takes in the comments that stand before this declaration."""
        queue, first = self.comments.pop(self.at, []), True
        while queue:
            self.note(queue, first)
            first = False

    def scope(self, space, owner=None):
        saved, self.doc = (self.row_doc, self.block), ""
        if owner is not None:
            self.row_doc, self.block = None, ""
        self.sections.append("")
        super().scope(space, owner)
        self.sections.pop()
        if owner is not None:
            self.row_doc, self.block = saved[0], ""

    def add(self, kind, name, text, place):
        if text.startswith("RAMET_OPTION "):
            kind, text = "option", text[len("RAMET_OPTION "):]
        if kind in ("declared", "namespace"):  # not documented
            self.doc = ""
            return None
        entry = super().add(kind, name, text, place)
        row = self.row_at(place[3])
        entry.comment, entry.section = self.comment_for(row), self.sections[-1]
        if not entry.comment and kind == "variable" and entry.owner is not None and row == self.plain_row + 1:
            entry.comment = self.plain
        return entry

    def note(self, queue, first):
        """Takes a comment in: of several lines when they follow each other and are of one kind."""
        token, place = queue[0]
        row = self.row(place)
        section = SECTION.match(token)
        if section:
            self.sections[-1] = section.group(1)
            queue.pop(0)
            return
        trailing = first and self.at and self.row_at(self.at - 1) == row
        is_c = self.lines[row][2].startswith(C_HEADERS)
        is_contract = lambda token: token.startswith(("///", "/*") if is_c else "///")
        contract = is_contract(token)
        text, last, column = [], row, self.column(place)
        while queue:
            token, place = queue[0]
            r = self.row(place)
            if trailing and r > row and self.column(place) != column:
                break
            if r > last + 1 or is_contract(token) != contract or SECTION.match(token):
                break
            text.append(token)
            last = r + token.count("\n")
            queue.pop(0)
            if is_c and token.startswith("/*"):
                break
        if trailing:
            self.trailing(" ".join(re.sub(r"^///?<?\s?|^/\*+\s*|\s*\*/$", "", t) for t in text), row)
        elif not contract:
            self.doc, self.block = "", ""
            self.plain, self.plain_row = "\n".join(re.sub(r"^// ?", "", t) for t in text), last
        else:
            self.doc = "\n".join(re.sub(r"^///\s?|^/\*\s*|\s*\*/$|(?m:^\s*\* ?)", "", t) for t in text)
            self.doc_row = last
            self.block, self.block_row = (self.doc, last) if self.doc.rstrip().endswith(":") else ("", -1)

    def column(self, place):
        return place - self.source.rfind("\n", 0, place)

    def trailing(self, text, row):
        """A comment after the code of its line."""
        for entry in self.entries[-6:]:
            if entry.end == row and not entry.comment:
                entry.comment = text

    def comment_for(self, row):
        """The comment that holds for what starts in this line: right above it, above another declaration of the same line, or
        one that ends with a colon above a block without an empty line."""
        if self.doc and self.starts_after(self.doc_row, row):
            self.row_doc, self.doc = (self.doc, self.where(row)), ""
            if self.block:
                self.block_row = row
            return self.row_doc[0]
        self.doc = ""
        if self.row_doc and self.row_doc[1] == self.where(row):
            return self.row_doc[0]
        if self.block:
            if all(self.lines[r][3].strip() for r in range(self.block_row, row) if self.lines[r][0] == self.lines[row][0]):
                self.block_row = row
                return self.block
            self.block = ""
        return ""

    def starts_after(self, above, row):
        return all(not self.lines[r][3].strip() for r in range(above + 1, row)) and row - above <= 1 or row == above + 1

    def where(self, row):
        return self.lines[row][0], self.lines[row][1]


def of_text(text, file="x.h"):
    """Entries of a header's text, preprocessed."""
    return Reader(cxx.lines_of(text, file)).entries
