"""Reads declarations of C++ headers: the one reader of the checks, the lists of names and the documents.

A compiler's preprocessor spells out macros and lists of operations (.inc). The reader then finds what namespaces and classes
declare, and skips bodies and initialisers. The headers are formatted and warning-free C++17, or C99, so this need not be a complete
parser: tests/tools/compat compares the names that it finds with clang's. Plain Python, because Bazel, CMake and archives run it.
"""

import bisect
import os
import re
import subprocess

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?:u8|[uUL])?R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|(?:u8|[uUL])?"(?:\\.|[^"\\])*"
    |'(?:\\.|[^'\\])+'|[A-Za-z_]\w*|\.?\d(?:[eEpP][+-]|'?[\w.])*|::|\.\.\.|->|\S""",
    re.VERBOSE | re.DOTALL,
)
MARKER = re.compile(r'^#\s*(?:line\s+)?(\d+)\s+"([^"]*)"((?: \d)*)')
CLOSING = {"(": ")", "[": "]", "{": "}"}
INTERNAL = re.compile(r"(^|::)(detail|kernels|emulated|ptx|impl|internal)(::|$)")
EXPORTED = re.compile(r'__attribute__\s*\(\(visibility\s*\("default"\)\)\) ?')  # RAMET_API
# Something in parentheses follows these, and no list of parameters.
NO_DECLARATOR = {"decltype", "alignas", "noexcept", "__attribute__", "__declspec", "explicit", "sizeof", "typeof"}


def preprocessed(includes, root, compiler=None, options=(), wanted=lambda path: not path.startswith(("/", "<"))):
    """[(file, line number, header, text)] of the lines of the files whose paths are wanted, in order, without directives. The header
    is the .h that a program includes for that line."""
    command = [compiler or os.environ.get("CXX", "g++"), "-std=c++17", "-x", "c++", "-E", "-I.", *options, "-"]
    text = "".join('#include "%s"\n' % name for name in includes)
    run = subprocess.run(command, cwd=root, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    if run.returncode != 0:
        raise SystemExit("%s\n%s" % (" ".join(command), run.stderr))
    lines, file, header, number, stack = [], "", "", 0, []
    for line in run.stdout.split("\n"):
        marker = MARKER.match(line) if line.startswith("#") else None
        if marker:
            number, file = int(marker.group(1)), os.path.normpath(marker.group(2))
            file = file if wanted(file) else ""
            if "1" in marker.group(3):
                stack.append(file)
            elif "2" in marker.group(3) and stack:
                stack.pop()
            header = next((f for f in reversed(stack) if f.endswith(".h")), file)
            continue
        if file and not line.lstrip().startswith("#"):
            lines.append((file, number, header, line))
        number += 1
    return lines


def lines_of(text, file="x.h"):
    """The same of a text that is preprocessed."""
    return [(file, number, file, line) for number, line in enumerate(text.split("\n"), 1)]


def split(text):
    """The parts between commas that stand in no bracket."""
    parts, depth, part = [], 0, ""
    for c in text:
        depth += (c in "<({[") - (c in ">)}]")
        if c == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += c
    return [p.strip() for p in parts + [part] if p.strip()]


class Entry:
    """One declaration."""

    def __init__(self, kind, scope, name, text, where, header):
        self.kind = kind  # class, function, variable, option, alias, using, enum, enumerator, macro; declared: a class or enum; namespace
        self.scope, self.name, self.text = scope, name, text
        self.file, self.line = where
        self.header = header  # the .h that a program includes for it
        self.owner, self.public = None, True  # the class or enum that has it
        self.bases, self.members, self.template, self.key = [], [], "", ""
        self.defined, self.end = False, 0  # has a body; the index of its last line
        self.comment, self.section = "", ""  # of a reader of comments

    @property
    def full(self):
        return "%s::%s" % (self.scope, self.name) if self.scope else self.name

    def pieces(self):
        """(what stands before its name, its parameters, what stands after them) of a function."""
        start = re.search(r"(?<![\w:])%s ?\(" % re.escape(self.name), self.text)
        depth, end = 1, start.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(self.text[end], 0)
            end += 1
        return self.text[:start.start()].strip(), self.text[start.end():end - 1], self.text[end:].strip()


class Reader:
    """`entries` are the declarations, members of classes included, in order. Of a class that `inside(full name)` is not true of,
    the body is skipped. `namespaces` are all that were opened."""

    def __init__(self, lines, inside=lambda full: True):
        self.lines, self.inside = lines, inside
        self.entries, self.namespaces, self.at = [], set(), 0
        self.source = self.prepared("\n".join(line[3] for line in lines))
        self.newlines = [match.start() for match in re.finditer("\n", self.source)]
        self.tokens, self.places, self.comments = [], [], {}  # comments: by the index of the token after them
        for match in TOKEN.finditer(self.source):
            if match.lastgroup == "comment":
                self.comments.setdefault(len(self.tokens), []).append((match.group(), match.start()))
            else:
                self.tokens.append(match.group())
                self.places.append(match.start())
        self.count = len(self.tokens)
        self.tokens += [""] * 3  # for peek()
        try:
            while self.at < self.count:
                self.scope("")
        except IndexError:
            raise SystemExit("%s ends inside a declaration" % lines[-1][0])

    # What a reader of comments adds to.
    def prepared(self, text):
        return EXPORTED.sub("", text)

    def here(self):
        """Called between declarations."""

    def row(self, place):
        """The index of the line of a place in the source."""
        return bisect.bisect_left(self.newlines, place)

    def row_at(self, at):
        return self.row(self.places[at]) if at < self.count else len(self.lines)

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead]

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def raw(self, begin, end):
        """Source text of tokens [begin, end), without comments, on one line."""
        parts, last = [], None
        for token, start in zip(self.tokens[begin:end], self.places[begin:end]):
            if last is not None and start != last:
                parts.append(" ")
            parts.append(token)
            last = start + len(token)
        return "".join(parts)

    def balanced(self):
        """Skips a bracket and all up to the one that closes it."""
        closing = [CLOSING[self.next()]]
        while closing:
            token = self.next()
            if token in CLOSING:
                closing.append(CLOSING[token])
            elif token == closing[-1]:
                closing.pop()

    def over(self):
        """Skips a token, or a bracket with what is in it."""
        self.balanced() if self.peek() in CLOSING else self.next()

    def angles(self):
        """Skips <...>. Comparisons in it stand in parentheses."""
        depth = 0
        while True:
            depth += {"<": 1, ">": -1}.get(self.peek(), 0)
            self.over()
            if depth == 0:
                return

    def attributes(self):
        while self.peek() in ("alignas", "__attribute__", "__declspec") or self.peek() == self.peek(1) == "[":
            self.at += self.peek() != "["
            self.balanced()

    def to_semicolon(self):
        while self.peek() != ";":
            self.over()
        self.next()

    def scope(self, space, owner=None):
        """Declarations up to the closing brace. `owner`: the class that has this body."""
        access = "private" if owner is not None and owner.key == "class" else "public"
        while self.at < self.count:
            self.here()
            token = self.peek()
            if token in ("}", ""):
                self.at += 1
                return
            if owner is not None and token in ("public", "protected", "private") and self.peek(1) == ":":
                access = token
                self.at += 2
            elif token == "namespace" or (token == "inline" and self.peek(1) == "namespace"):
                self.namespace(space)
            elif token == "extern" and self.peek(1).startswith('"'):
                self.at += 2
                if self.peek() == "{":
                    self.next()
                    self.scope(space)
            else:
                self.declaration(space, owner, access == "public")

    def namespace(self, space):
        begin, inline = self.at, self.peek() == "inline"
        self.at += 1 + inline
        self.attributes()
        names = []
        while self.peek() not in ("{", "="):
            names.append(self.next())
        if self.next() == "=":
            self.to_semicolon()
            self.add("namespace", names[0], self.raw(begin, self.at - 1), (space, None, True, begin))
            return
        inner = space if inline else "::".join(part for part in (space, "".join(names)) if part)
        self.namespaces.add(inner)
        self.scope(inner if names else "detail")  # an unnamed namespace has no public names

    def add(self, kind, name, text, place):
        """`place`: the namespace or class, its owner, whether it is public there, its first token."""
        space, owner, public, begin = place
        file, line, header, _ = self.lines[self.row_at(begin)]
        entry = Entry(kind, space, name, text, (file, line), header)
        entry.owner, entry.end = owner, self.row_at(self.at - 1)
        entry.public = public and (owner is None or owner.public) and not INTERNAL.search(space)
        self.entries.append(entry)
        if owner is not None:
            owner.members.append(entry)
        return entry

    def declaration(self, space, owner, public):
        place, before, template = (space, owner, public, self.at), len(self.entries), ""
        self.attributes()
        begin = place[3]
        while self.peek() == "template" and self.peek(1) == "<":
            self.next()
            self.angles()
            template, begin = self.raw(place[3], self.at), self.at
            self.here()
        token = self.peek()
        if token in (";", "static_assert", "asm", "template") or token == "extern" and self.peek(1) == "template":
            self.to_semicolon()
        elif token == "friend":
            while self.peek() not in (";", "{"):
                self.over()
            self.over()
        elif token in ("using", "typedef"):
            self.alias(place)
        elif token in ("class", "struct", "union", "enum"):
            self.type(place, begin)
        else:
            self.object(place, begin)
        for entry in self.entries[before:before + 1]:
            entry.template = template

    def alias(self, place):
        begin = self.at
        self.to_semicolon()
        tokens, text = self.tokens[begin:self.at - 1], self.raw(begin, self.at - 1)
        if tokens[0] == "typedef":
            of_function = re.search(r"\(\*(\w+)\)", text)
            self.add("alias", of_function.group(1) if of_function else re.findall(r"[A-Za-z_]\w*", text)[-1], text, place)
        elif tokens[2] in ("=", "["):
            self.add("alias", tokens[1], text, place)
        elif tokens[1] != "namespace":
            for part in text[len("using "):].split(","):
                name = re.findall(r"[A-Za-z_]\w*", part)
                if name and not (len(name) > 1 and name[-1] == name[-2]):  # inherited constructors
                    self.add("using", name[-1], "using " + part.strip(), place)

    def type(self, place, begin):
        key, start = self.next(), self.at
        scoped = key == "enum" and self.peek() in ("class", "struct")
        self.at += scoped
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
            if name and self.tokens[self.at - 2] != "::":  # struct X f();
                self.at = start
                self.object(place, begin)
                return
            name = token
        while self.peek() not in ("{", ";"):
            self.angles() if self.peek() == "<" else self.next()
        space, owner, public, _ = place
        public = public and not qualified and bool(name)
        text = self.raw(begin, self.at)
        if self.peek() == ";":
            self.add("declared", name, text, (space, owner, public, place[3]))
            self.next()
            return
        entry = self.add("enum" if key == "enum" else "class", name, text, (space, owner, public, place[3]))
        entry.key = key
        if ":" in text.replace("::", ""):
            bases = re.split(r"(?<!:):(?!:)", text, maxsplit=1)[1]
            entry.bases = [re.sub(r"\b(public|private|protected|virtual)\b|\s+", "", base) for base in split(bases)]
        inner = "%s::%s" % (space, name) if space else name
        if key == "enum":
            self.enumerators(inner if scoped else space, entry)
        elif self.inside(inner):
            self.next()
            self.scope(inner, entry)
        else:
            self.balanced()
        entry.end = self.row_at(self.at)
        start = self.at
        self.to_semicolon()
        for part in split(self.raw(start, self.at - 1)) if owner is not None else ():  # members of this type
            word = re.match(r"\W*(\w+)", part)
            if word:
                self.add("variable", word.group(1), (name or key) + " " + part, place)

    def enumerators(self, space, entry):
        self.next()
        while True:
            self.here()
            if self.peek() == "}":
                self.next()
                return
            begin, name = self.at, self.peek()
            while self.peek() not in (",", "}"):
                self.over()
            text = self.raw(begin, self.at)
            self.at += self.peek() == ","
            self.add("enumerator", name, text, (space, entry, entry.public, begin)).end = self.row_at(begin)

    def object(self, place, begin):
        """A function, with or without its body, or a variable."""
        name, before, destructor = "", "", False
        while True:
            token = self.peek()
            if token == "operator":
                start = self.at
                while self.peek() != "(" or self.tokens[self.at - 1] == "operator":
                    self.next()
                name = self.raw(start, self.at)
                break
            if token == "<":
                self.angles()
                before = ">"
                continue
            if token == "(" and self.tokens[self.at - 1] in NO_DECLARATOR or token == self.peek(1) == "[":
                self.balanced()
                continue
            if token in ("(", "=", "{", ";", "[", ":", ","):  # a colon: of a bit-field
                if token == "(" and self.peek(1) == "*":  # of a pointer to a function
                    name = self.peek(2)
                break
            destructor = destructor or token == "~"
            if re.match(r"[A-Za-z_]", token):
                name = "" if before == "::" else token  # a member that is defined outside its class
            before = self.next()
        if before == "::" and token != "operator":
            name = ""
        if self.peek() == "(":
            end, defined = self.function()
            if name:
                self.add("function", "~" * destructor + name, self.raw(begin, end), place).defined = defined
            return
        self.to_semicolon()
        if not name:
            return
        first, *more = split(self.raw(begin, self.at - 1))
        self.add("variable", name, first, place)
        for part in more:  # int a = 1, *b;
            kind = re.split(r"\b%s\b" % name, first)[0].rstrip("*& ")
            self.add("variable", re.match(r"[\s*&]*(\w+)", part).group(1), "%s %s" % (kind, part), place)

    def function(self):
        """Skips parameters, initialisers and body: (the token after the declaration itself, whether there is a body)."""
        self.balanced()
        end = 0
        while self.peek() != ";":
            token = self.peek()
            end = end or self.at * (token in (":", "{"))
            self.angles() if token == "<" else self.over()
            if token == "{" and self.peek() not in (",", "{"):  # else: one of a constructor's initialisers
                return end, True
        self.next()
        return self.at - 1, False


def names(entries):
    """{namespace: {name: whether it is a type's}}"""
    found = {}
    for e in entries:
        outer = e.owner.owner is None and e.scope == e.owner.scope if e.kind == "enumerator" else e.owner is None
        if outer and e.public and e.scope and re.match(r"(?!operator\b)[A-Za-z_]", e.name):
            found.setdefault(e.scope, {})[e.name] = e.kind in ("class", "enum", "declared")
    return found


def names_of(header, root, **how):
    """names() of what a header includes, for preprocessed()."""
    return names(Reader(preprocessed([header], root, **how), inside=lambda full: False).entries)
