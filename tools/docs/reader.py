"""Reads declarations and their comments from the text of headers in which macros are spelled out (declarations.py).

The headers are formatted and warning-free C++17, or C99: this does not have to be a parser of everything.
"""

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "compare"))
from signatures import split  # noqa: E402

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<space>[ \t\f]+)|(?P<line>\n)|(?P<id>[A-Za-z_]\w*)
    |(?P<string>(?:u8|[uUL])?R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|(?:u8|[uUL])?"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
    |(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)|(?P<punct>::|\.\.\.|->|.)""",
    re.VERBOSE | re.DOTALL,
)
CLOSING = {"(": ")", "[": "]", "{": "}"}
INTERNAL = re.compile(r"(^|::)(detail|kernels|emulated|ptx|impl|internal)(::|$)")
SECTION = re.compile(r"^(?://|/\*) -{2,} ?(.*?) ?-{2,}(?: \*/)?$")
C_HEADERS = ("nn/c/", "parallel/c/")  # their comments are C's
NO_DECLARATOR = {"decltype", "alignas", "noexcept", "__attribute__", "explicit", "sizeof"}
ATTRIBUTE = re.compile(r'__attribute__\(\(visibility\("default"\)\)\) ?')
# An option as RAMET_ARG spells it out (nn/module/arg.h).
OPTION = re.compile(
    r"public: auto (\w+)\((.*?) new_\1\) ?-> ?decltype\(\*this\) \{ this->\1_ = static_cast<.*?&&>\(new_\1\); return \*this; \}"
    r" const .*?& \1\(\) const noexcept \{ return this->\1_; \} .*?& \1\(\) noexcept \{ return this->\1_; \}\s*private: .*? \1_"
)


class Entry:
    """One declaration. `comment` is what stands at it; contracts.py says what else counts."""

    def __init__(self, kind, scope, name, text, where, header):
        self.kind = kind  # class, function, variable, option, alias, enum, enumerator, macro
        self.scope, self.name, self.text = scope, name, text
        self.file, self.line = where
        self.header = header  # the .h that a program includes for it
        self.comment, self.section, self.bases, self.members = "", "", [], []
        self.template = ""

    @property
    def full(self):
        return "%s::%s" % (self.scope, self.name) if self.scope else self.name


class Reader:
    def __init__(self, lines):
        self.tokens = []  # (text, kind, index of the line, place in the text)
        self.lines = lines
        text = ATTRIBUTE.sub("", "\n".join(l[3] for l in lines)) if lines else ""
        text = OPTION.sub(r"RAMET_OPTION(\1, (\2))", text)
        row = 0
        for match in TOKEN.finditer(text):
            kind, token = match.lastgroup if match.lastgroup != "d" else "string", match.group(0)
            if kind == "line":
                row += 1
            else:
                if kind != "space":
                    self.tokens.append((token, kind, row, match.start()))
                row += token.count("\n")
        self.text, self.at, self.entries = text, 0, []
        self.doc, self.doc_row, self.row_doc = "", -1, None
        self.block, self.block_row = "", -1  # a comment that ends with a colon holds for what follows
        self.sections = [""]
        self.plain, self.plain_row = "", -1  # a comment of another kind: what it says of the member under it counts
        while self.at < len(self.tokens):
            self.scope("", None)

    # ---- tokens -------------------------------------------------------------------------------
    def peek(self, ahead=0):
        """The next token that is no comment. Comments in between are noted."""
        if ahead:
            i, left = self.at, ahead
            while i < len(self.tokens):
                if self.tokens[i][1] != "comment":
                    if left == 0:
                        return self.tokens[i][0]
                    left -= 1
                i += 1
            return ""
        while self.at < len(self.tokens) and self.tokens[self.at][1] == "comment":
            self.note()
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def next(self):
        token = self.peek()
        self.at += 1
        return token

    def row(self):
        self.peek()
        return self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.lines)

    def note(self):
        """Takes a comment in: of several lines when they follow each other and are of one kind."""
        token, _, row, _ = self.tokens[self.at]
        before = self.tokens[self.at - 1] if self.at else None
        trailing = before and before[2] == row and before[1] != "comment"
        section = SECTION.match(token)
        if section:
            self.sections[-1] = section.group(1)
            self.at += 1
            return
        is_c = self.lines[row][2].startswith(C_HEADERS)
        contract = token.startswith("///") or is_c and token.startswith("/*")
        text, last, column = [], row, self.column(self.at)
        while self.at < len(self.tokens) and self.tokens[self.at][1] == "comment":
            token, _, r, _ = self.tokens[self.at]
            if trailing and r > row and self.column(self.at) != column:
                break
            if r > last + 1 or (token.startswith(("///", "/*")) if is_c else token.startswith("///")) != contract or SECTION.match(token):
                break
            text.append(token)
            last = r + token.count("\n")
            self.at += 1
            if is_c and token.startswith("/*"):
                break
        if trailing:
            self.trailing(" ".join(re.sub(r"^///?<?\s?|^/\*+\s*|\s*\*/$", "", t) for t in text), row)
            return
        if not contract:
            self.doc, self.block = "", ""
            self.plain, self.plain_row = "\n".join(re.sub(r"^// ?", "", t) for t in text), last
            return
        self.doc = "\n".join(re.sub(r"^///\s?|^/\*\s*|\s*\*/$|(?m:^\s*\* ?)", "", t) for t in text)
        self.doc_row = last
        self.block, self.block_row = (self.doc, last) if self.doc.rstrip().endswith(":") else ("", -1)

    def column(self, at):
        start = self.tokens[at][3]
        return start - self.text.rfind("\n", 0, start)

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

    def raw(self, begin, end):
        """Source text of tokens [begin, end), without comments, on one line."""
        parts, last = [], None
        for token, kind, row, start in self.tokens[begin:end]:
            if kind == "comment":
                continue
            if last is not None and start != last:
                parts.append(" ")
            parts.append(token)
            last = start + len(token)
        return "".join(parts)

    # ---- declarations -------------------------------------------------------------------------
    def balanced(self):
        closing = [CLOSING[self.next()]]
        while closing:
            token, kind = self.tokens[self.at][0], self.tokens[self.at][1]
            self.at += 1
            if kind in ("comment", "string"):
                continue
            if token in CLOSING:
                closing.append(CLOSING[token])
            elif token == closing[-1]:
                closing.pop()

    def angles(self):
        depth = 0
        while True:
            token = self.peek()
            if token in CLOSING:
                self.balanced()
                continue
            self.next()
            depth += {"<": 1, ">": -1}.get(token, 0)
            if depth == 0:
                return

    def attributes(self):
        while True:
            if self.peek() == "[" and self.peek(1) == "[":
                self.balanced()
            elif self.peek() in ("alignas", "__attribute__"):
                self.next()
                self.balanced()
            else:
                return

    def to_semicolon(self):
        while self.peek() != ";":
            if self.peek() in CLOSING:
                self.balanced()
            else:
                self.next()
        self.next()

    def scope(self, space, owner):
        """Declarations up to the closing brace. `owner`: the class that has this body."""
        self.sections.append("")
        access = "public" if owner is None or owner.key != "class" else "private"
        while self.at < len(self.tokens):
            token = self.peek()
            if token in ("}", ""):
                self.at += 1
                break
            if owner is not None and token in ("public", "protected", "private") and self.peek(1) == ":":
                access = token
                self.at += 2
                continue
            if owner is not None and token == "RAMET_OPTION":
                self.option(space, owner)
                access = "private"
                continue
            if token == "namespace" or (token == "inline" and self.peek(1) == "namespace"):
                self.namespace(space)
                continue
            if token == "extern" and self.peek(1).startswith('"'):
                self.next(), self.next()
                if self.peek() == "{":
                    self.next()
                    self.scope(space, None)
                continue
            self.declaration(space, owner, access == "public")
        self.sections.pop()

    def namespace(self, space):
        inline = self.peek() == "inline"
        for _ in range(1 + inline):
            self.next()
        self.attributes()
        names = []
        while self.peek() not in ("{", "="):
            names.append(self.next())
        if self.next() == "=":
            self.to_semicolon()
            return
        inner = space
        for name in names:
            if name != "::" and not inline:
                inner = inner + "::" + name if inner else name
        self.doc = ""
        self.scope(inner if names else "detail", None)

    def add(self, kind, space, name, text, row, owner, public, comment=None):
        file, line = self.where(row)
        entry = Entry(kind, space, name, text, (file, line), self.lines[row][2])
        entry.comment = self.comment_for(row) if comment is None else comment
        if not entry.comment and kind == "variable" and owner is not None and row == self.plain_row + 1:
            entry.comment = self.plain
        entry.section, entry.owner, entry.key = self.sections[-1], owner, ""
        entry.end = self.tokens[self.at - 1][2]
        entry.public = public and (owner is None or owner.public) and not INTERNAL.search(space)
        (self.entries if owner is None else owner.members).append(entry)
        if owner is not None:
            self.entries.append(entry)
        return entry

    def option(self, space, owner):
        row = self.row()
        self.next(), self.next()
        name = self.next()
        begin = self.at
        self.balanced_to_close()
        kind = self.raw(begin + 1, self.at - 1).strip()
        kind = kind[1:-1] if kind.startswith("(") else kind
        begin = self.at
        self.to_semicolon()
        default = self.raw(begin, self.at - 1)
        self.add("option", space, name, "%s %s%s" % (kind, name, " " + default if default else ""), row, owner, True)

    def balanced_to_close(self):
        depth = 1
        while depth:
            token = self.next()
            depth += {"(": 1, ")": -1}.get(token, 0)

    def declaration(self, space, owner, public):
        row = self.row()
        begin = self.at
        self.attributes()
        token = self.peek()
        if token == ";":
            self.next()
        elif token in ("static_assert", "asm", "friend") or (token == "extern" and self.peek(1) == "template"):
            self.friend(space, row, begin) if token == "friend" else self.to_semicolon()
        elif token == "template":
            self.next()
            if self.peek() == "<":
                self.angles()
                template = self.raw(begin, self.at)
                if self.peek() == "friend":
                    self.friend(space, row, begin)
                else:
                    self.one(space, owner, public, row, self.at, template)
            else:
                self.to_semicolon()
        else:
            self.one(space, owner, public, row, begin, "")

    def friend(self, space, row, begin):
        while self.peek() not in (";", "{"):
            self.balanced() if self.peek() == "(" else self.next()
        self.balanced() if self.peek() == "{" else self.next()

    def one(self, space, owner, public, row, begin, template):
        before = len(self.entries)
        token = self.peek()
        if token == "using" or token == "typedef":
            self.alias(space, owner, public, row)
        elif token in ("class", "struct", "union", "enum"):
            self.type(space, owner, public, row, begin)
        else:
            self.object(space, owner, public, row, begin)
        for entry in self.entries[before:before + 1]:
            entry.template = template

    def alias(self, space, owner, public, row):
        begin, kind = self.at, self.next()
        self.to_semicolon()
        text = self.raw(begin, self.at - 1)
        words = re.findall(r"[A-Za-z_]\w*", text)
        if kind == "typedef":
            self.add("alias", space, words[-1], text, row, owner, public)
        elif "=" in text:
            self.add("alias", space, words[1], text, row, owner, public)
        elif words[1] != "namespace":
            for part in text[len("using "):].split(","):
                name = re.findall(r"[A-Za-z_]\w*", part)
                if name and not (len(name) > 1 and name[-1] == name[-2]):  # inherited constructors
                    self.add("using", space, name[-1], "using " + part.strip(), row, owner, public)

    def type(self, space, owner, public, row, begin):
        key = self.next()
        scoped = key == "enum" and self.peek() in ("class", "struct")
        if scoped:
            self.next()
        self.attributes()
        name, qualified = "", False
        while self.peek() not in ("{", ";", ":", "(", "="):
            if self.peek() == "<":
                self.angles()
                continue
            token = self.next()
            qualified = qualified or token == "::"
            if token in ("final", "::"):
                continue
            if name and self.tokens[self.at - 2][0] != "::":  # struct X f();
                self.at = begin
                self.next()
                self.object(space, owner, public, row, begin)
                return
            name = token
        while self.peek() not in ("{", ";"):
            self.angles() if self.peek() == "<" else self.next()
        text = self.raw(begin, self.at)
        if self.peek() == ";":  # declared, not defined
            self.next()
            self.doc = ""
            return
        entry = self.add("enum" if key == "enum" else "class", space, name, text, row, owner, public)
        entry.key = key
        entry.public = entry.public and not qualified and bool(name)
        if ":" in text.replace("::", ""):
            bases = re.split(r"(?<!:):(?!:)", text, maxsplit=1)[1]
            entry.bases = [re.sub(r"\b(public|private|protected|virtual)\b|\s+", "", b) for b in split(bases)]
        inner = "%s::%s" % (space, name) if space else name
        if key == "enum":
            self.next()
            self.enumerators(inner if scoped else space, entry)
        else:
            self.next()
            saved, self.row_doc, self.block, self.doc = self.row_doc, None, "", ""
            self.scope(inner, entry)
            self.row_doc, self.block = saved, ""
        entry.end = self.row()
        if self.peek() == ";":
            self.next()
        else:  # members of this type
            start = self.at
            self.to_semicolon()
            if owner is not None:
                for part in split(self.raw(start, self.at - 1)):
                    word = re.match(r"\W*(\w+)", part)
                    if word:
                        self.add("variable", space, word.group(1), (name or key) + " " + part, row, owner, public)

    def enumerators(self, space, entry):
        while self.peek() != "}":
            row = self.row()
            begin = self.at
            name = self.next()
            while self.peek() not in (",", "}"):
                self.balanced() if self.peek() in CLOSING else self.next()
            text = self.raw(begin, self.at)
            if self.peek() == ",":
                self.next()
            value = self.add("enumerator", space, name, text, row, entry, entry.public)
            value.end = row
        self.next()

    def object(self, space, owner, public, row, begin):
        """A function, with or without its body, or a variable."""
        name, before, function, destructor = "", "", False, False
        while True:
            token = self.peek()
            if token == "operator":
                start = self.at
                while self.peek() != "(" or self.tokens[self.at - 1][0] == "operator":
                    self.next()
                name = self.raw(start, self.at)
                break
            if token == "<":
                self.angles()
                before = ">"
                continue
            if token == "(" and self.tokens[self.at - 1][0] in NO_DECLARATOR or token == "[" and self.peek(1) == "[":
                self.balanced()
                continue
            if token in ("(", "=", "{", ";", "[", ":", ","):
                if token == "(" and self.peek(1) == "*":  # of a pointer to a function
                    name = self.peek(2)
                break  # a colon: of a bit-field
            destructor = destructor or token == "~"
            if re.match(r"[A-Za-z_]", token):
                name = "" if before == "::" else token
            before = self.next()
        # A member defined outside its class has a qualified name.
        if before == "::" or (name == "" and token != "operator"):
            name = ""
        end = self.at
        if self.peek() == "(":
            function = True
            self.balanced()
            end = self.at
            while True:
                token = self.peek()
                if token == ";":
                    self.next()
                    break
                if token == ":" :
                    end = self.at
                    self.initializers()
                    break
                if token == "{":
                    self.balanced()
                    break
                if token in CLOSING:
                    self.balanced()
                elif token == "<":
                    self.angles()
                else:
                    self.next()
                end = self.at
        else:
            braces = 0
            while self.peek() != ";":
                braces = braces or self.peek() == "{"
                self.balanced() if self.peek() in CLOSING else self.next()
            end = self.at
            self.next()
        if not name:
            self.doc = ""
            return
        text = self.raw(begin, end)
        if destructor:
            name = "~" + name
        variable = not function
        entry = self.add("variable" if variable else "function", space, name, text, row, owner, public)
        first, *more = split(text) if variable else [text]
        entry.text = first
        for part in more:  # int a = 1, *b;
            word = re.match(r"[\s*&]*(\w+)", part)
            kind = re.split(r"\b%s\b" % name, first)[0].rstrip("*& ")
            self.add("variable", space, word.group(1), "%s %s" % (kind, part), row, owner, public, entry.comment)

    def initializers(self):
        """`: a(1), b{2} {...}`"""
        self.next()
        while True:
            while self.peek() not in ("(", "{"):
                self.angles() if self.peek() == "<" else self.next()
            self.balanced()
            if self.peek() == "...":
                self.next()
            if self.peek() != ",":
                break
            self.next()
        if self.peek() == "{":
            self.balanced()


def of_text(text, file="x.h"):
    """Entries of a header's text, preprocessed."""
    return Reader([(file, number, file, line) for number, line in enumerate(text.split("\n"), 1)]).entries
