"""The public names of Ramet, by namespace, read from the preprocessed text of ramet.h.

One compiler makes the text, so every macro that declares functions has been expanded. Text from other libraries' headers is left
out. Only declarations in namespaces are read; bodies and initialisers are skipped. The headers are formatted and warning-free
C++17, so this need not be a complete parser: tests/tools compares the names that it finds with clang's declarations.
"""

import re
import subprocess

TOKEN = re.compile(
    r"""(?P<id>[A-Za-z_]\w*)|(?P<string>(?:u8|[uUL])?R"(?P<d>[^(\s]*)\(.*?\)(?P=d)"|(?:u8|[uUL])?"(?:\\.|[^"\\])*")
    |(?P<char>'(?:\\.|[^'\\])+')|(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)|(?P<punct>::|\.\.\.|->|.)""",
    re.VERBOSE | re.DOTALL,
)
MARKER = re.compile(r'^#\s*(?:line\s+)?\d+\s+"([^"]*)"')
CLOSING = {"(": ")", "[": "]", "{": "}"}
# Something in parentheses follows these, and no list of parameters.
NO_DECLARATOR = {"decltype", "alignas", "noexcept", "__attribute__", "__declspec", "explicit", "sizeof", "typeof"}
SPECIFIERS = {"constexpr", "inline", "extern", "static", "const", "auto", "thread_local", "volatile"}


def own(path):
    return not path.startswith(("/", "<"))


def preprocessed(compiler, root, header="ramet.h", options=(), wanted=own):
    """The lines of the headers whose paths are wanted, in order, without directives."""
    command = [compiler, "-std=c++17", "-x", "c++", "-E", "-I.", *options, "-"]
    run = subprocess.run(command, cwd=root, input='#include "%s"\n' % header, capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit("names: %s\n%s" % (" ".join(command), run.stderr))
    taken, lines = False, []
    for line in run.stdout.splitlines():
        marker = MARKER.match(line)
        if marker:
            taken = wanted(marker.group(1))
        elif taken and not line.lstrip().startswith("#"):
            lines.append(line)
    return "\n".join(lines)


class Scanner:
    """Reads the declarations of namespaces. `found[namespace]` are the names, each with True where it is a type's, and
    `namespaces` ramet and all below it that were opened."""

    def __init__(self, text):
        self.tokens = [m.group(0) for m in TOKEN.finditer(text) if not m.group(0).isspace()]
        self.at = 0
        self.found = {}
        self.namespaces = set()
        self.scope("")

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1]

    def add(self, space, name, is_type=False):
        if space and re.match(r"[A-Za-z_]", name):
            self.found.setdefault(space, {})[name] = is_type

    def balanced(self):
        """Skips a bracket and all up to the one that closes it."""
        closing = [CLOSING[self.next()]]
        while closing:
            token = self.next()
            if token in CLOSING:
                closing.append(CLOSING[token])
            elif token == closing[-1]:
                closing.pop()

    def angles(self):
        """Skips <...>. Comparisons in it stand in parentheses."""
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
            elif self.peek() in ("alignas", "__attribute__", "__declspec"):
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

    def scope(self, space):
        """Declarations up to the closing brace of `space`, or the end."""
        while self.at < len(self.tokens):
            if self.peek() == "}":
                self.next()
                return
            self.declaration(space)

    def declaration(self, space):
        self.attributes()
        token = self.peek()
        if token == ";":
            self.next()
        elif token == "namespace" or (token == "inline" and self.peek(1) == "namespace"):
            self.namespace(space)
        elif token == "extern" and self.peek(1).startswith('"'):
            self.at += 2
            if self.peek() == "{":
                self.next()
                self.scope(space)
        elif token in ("static_assert", "asm") or (token == "extern" and self.peek(1) == "template"):
            self.to_semicolon()
        elif token == "template":
            self.next()
            if self.peek() == "<":
                self.angles()
                self.declaration(space)
            else:
                self.to_semicolon()
        elif token == "using":
            self.using(space)
        elif token in ("class", "struct", "union", "enum"):
            self.type(space)
        elif token == "typedef":
            start = self.at
            self.to_semicolon()
            self.add(space, [t for t in self.tokens[start : self.at] if re.match(r"[A-Za-z_]", t)][-1])
        else:
            self.object(space)

    def namespace(self, space):
        inline = self.peek() == "inline"
        self.at += 1 + inline
        self.attributes()
        names = []
        while self.peek() not in ("{", "="):
            names.append(self.next())
        if self.next() == "=":
            self.add(space, names[0])
            self.to_semicolon()
            return
        inner = space
        for name in names:
            if name != "::" and not inline:
                inner = inner + "::" + name if inner else name
        if inner.split("::")[0] == "ramet":  # others are opened for overloads
            self.namespaces.add(inner)
        # An unnamed namespace has no public names.
        self.scope(inner if names else "")

    def using(self, space):
        start = self.at
        self.to_semicolon()
        tokens = self.tokens[start + 1 : self.at - 1]
        if tokens[0] == "namespace":
            return
        if len(tokens) > 1 and tokens[1] in ("=", "["):
            self.add(space, tokens[0])
            return
        for end in [i for i, t in enumerate(tokens) if t == ","] + [len(tokens)]:
            self.add(space, tokens[end - 1])

    def type(self, space):
        start = self.at
        kind = self.next()
        scoped = kind == "enum" and self.peek() in ("class", "struct")
        self.at += scoped
        self.attributes()
        name = ""
        qualified = False
        while self.peek() not in ("{", ";", ":", "(", "="):
            if self.peek() == "<":
                self.angles()
                continue
            token = self.next()
            qualified = qualified or token == "::"
            if token not in ("final", "::") and (not name or self.tokens[self.at - 2] == "::"):
                name = token
            elif token not in ("final", "::"):  # struct X f();
                self.at = start + 1
                self.object(space)
                return
        if not qualified:
            self.add(space, name, True)
        while self.peek() not in ("{", ";"):
            self.angles() if self.peek() == "<" else self.next()
        if self.peek() == "{":
            begin = self.at
            self.balanced()
            if kind == "enum" and not scoped:
                self.enumerators(space, self.tokens[begin + 1 : self.at - 1])
        self.to_semicolon()

    def enumerators(self, space, tokens):
        depth, first = 0, True
        for token in tokens:
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(token, 0)
            if first:
                self.add(space, token)
            first = depth == 0 and token == ","

    def object(self, space):
        """A function, with or without its body, or a variable."""
        name, before = "", ""
        while True:
            token = self.peek()
            if token == "operator":
                while self.peek() != "(" or self.tokens[self.at - 1] == "operator":
                    self.next()
                name = ""
                break
            if token == "<":
                self.angles()
                before = ">"
                continue
            if token == "(" and self.tokens[self.at - 1] in NO_DECLARATOR or token == "[" and self.peek(1) == "[":
                self.balanced()
                continue
            if token in ("(", "=", "{", ";", "["):
                break
            if re.match(r"[A-Za-z_]", token) and token not in SPECIFIERS:
                # A member that is defined outside its class has a qualified name.
                name = "" if before == "::" else token
            before = self.next()
        self.add(space, name)
        if self.peek() == "=":
            self.initializers(space)
            return
        while True:
            token = self.peek()
            if token == ";":
                self.next()
                return
            if token == "{":
                self.balanced()
                if self.peek() not in (",", "{", ";"):  # else: one of a constructor's initialisers, or a variable's
                    return
            elif token in CLOSING:
                self.balanced()
            else:
                self.next()

    def initializers(self, space):
        """After the first name of `int a = 1, b = 2;`."""
        while self.peek() != ";":
            if self.peek() in CLOSING:
                self.balanced()
            elif self.next() == "," and self.peek(1) == "=":
                self.add(space, self.peek())
        self.next()


def scan(compiler, root, header="ramet.h", options=()):
    return Scanner(preprocessed(compiler, root, header, options))
