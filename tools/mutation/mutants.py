"""Finds the places where one changed token makes a mutant, and draws among them.

A small tokenizer, no parser: comments, literals and preprocessor lines are never touched. What a token means is read off
the layout that clang-format gives every file here: a binary operator has white space on both sides, a template bracket, a
reference and a dereference lack it on one.
"""

import bisect
import collections
import hashlib
import re

# Numbers that only say how work is cut or blocked: any value gives the same results, so changing one at its definition
# shows nothing. Their uses are bounds like any other and stay.
SIZES = {
    "kTaskElements": "elements of one task",
    "kGrain": "slivers of one task",
    "kUnroll": "accumulators that run side by side",
    "kGemmMC": "rows of one task",
    "kGemmNC": "columns packed at a time",
    "kGemmFits": "what a cache serves well unpacked",
    "kWideMC": "rows of one task",
    "kWideNC": "columns packed at a time",
    "kFewColumns": "where another loop order gets faster",
    "kStreamedElements": "where stores pass the caches",
    "kStreamElements": "where stores pass the caches",
}

# Names that stand in choices between two ways of the same bits: the condition or statement around one is left out.
CHOICES = {
    "parallel_grain": "whether the pool is worth it; never in the bits (tested with all thread counts)",
    "kGemmFits": "packed or in place, same products in the same order",
    "kFewColumns": "loop order over independent results",
    "kStreamedElements": "non-temporal or plain stores",
    "kStreamElements": "non-temporal or plain stores",
    "gemm_packs_a": "packed or in place",
    "gemm_packs_b": "packed or in place",
    "__builtin_expect": "a hint to the compiler",
    "__builtin_prefetch": "a hint to the processor",
    "_mm_prefetch": "a hint to the processor",
}

# Calls with arguments that are left out: checked by the compiler, off in the optimised build, or words for people.
UNTOUCHED_CALLS = {
    "static_assert": "the compiler's own check",
    "noexcept": "a declaration",
    "alignas": "a declaration",
    "decltype": "a declaration",
    "assert": "off in the optimised build, which is the one tested",
    "RAMET_WARN_ONCE": "words for people",
    "fail": "the text of an error",
    "describe": "the text of an error",
    "join": "the text of an error",
    "__builtin_expect": CHOICES["__builtin_expect"],
    "__builtin_prefetch": CHOICES["__builtin_prefetch"],
    "_mm_prefetch": CHOICES["_mm_prefetch"],
}
# Of these the first argument is the condition and the others are the text of an error.
CHECKS = {"RAMET_CHECK"}

# What an operator becomes. With several, each is a mutant of its own, and one of them is drawn.
BINARY = {
    "+": ("-",),
    "-": ("+",),
    "*": ("/", "+"),
    "/": ("*",),
    "%": ("/",),
    "+=": ("-=",),
    "-=": ("+=",),
    "*=": ("/=",),
    "/=": ("*=",),
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "&&": ("||",),
    "||": ("&&",),
}
COMPARISONS = {"<", "<=", ">", ">=", "==", "!="}
SWAPPED = {"min": "max", "max": "min", "imin": "imax", "imax": "imin", "vmin": "vmax", "vmax": "vmin"}
# After one of these a `-` is a sign.
BEFORE_A_SIGN = set("([{,=?:<>+-*/%&|") | COMPARISONS | {"&&", "||", "+=", "-=", "*=", "/=", "return", "case", "else"}

TOKEN = re.compile(
    r"""
    (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:\\\n|/\*.*?\*/|[^\n])*)
  | (?P<literal>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]*)\(.*?\)(?P=delimiter)"
      |(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"|(?:u8|[uUL])?'(?:\\.|[^'\\\n])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<operator><<=|>>=|<=>|\.\.\.|->\*|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|\S)
    """,
    re.X | re.M | re.S,
)

Token = collections.namedtuple("Token", "kind text start end")


class Mutant(collections.namedtuple("Mutant", "file line column start old new marked twin")):
    """One token `old` at `start` becomes `new`; `twin` counts equal lines of the file, from 0."""

    @property
    def id(self):
        return "%s:%d:%d:%s" % (self.file, self.line, self.column, self.new or "drop")

    @property
    def key(self):
        """Names the mutant independently of what stands in other lines."""
        return self.file, self.marked

    @property
    def change(self):
        return "%s => %s" % (self.old, self.new or "nothing")

    def apply(self, text):
        assert text.startswith(self.old, self.start)
        return text[: self.start] + self.new + text[self.start + len(self.old) :]

    def rank(self, seed):
        """Its place in the order of `seed`: an edit elsewhere moves no mutant, so a fixed seed draws nearly the same set."""
        text = "%s\n%s\n%s\n%d" % (seed, self.file, self.marked, self.twin)
        return hashlib.sha256(text.encode()).hexdigest()


def tokens_of(text):
    """Code only: no comments, no preprocessor lines. Literals stay, for context."""
    found = (Token(m.lastgroup if m.lastgroup != "delimiter" else "literal", m.group(), m.start(), m.end())
             for m in TOKEN.finditer(text))
    return [t for t in found if t.kind not in ("comment", "directive")]


def partners_of(tokens):
    """The index of the closing bracket of each opening one."""
    partners, open_ones = {}, []
    for i, t in enumerate(tokens):
        if t.text in ("(", "[", "{") and t.kind == "operator":
            open_ones.append(i)
        elif t.text in (")", "]", "}") and t.kind == "operator" and open_ones:
            partners[open_ones.pop()] = i
    return partners


def statements_of(tokens, partners):
    """(first, past the last) of each piece between `;`, braces and the ends of conditions."""
    cuts = set()
    for i, t in enumerate(tokens):
        if t.text in (";", "{", "}") and t.kind == "operator":
            cuts.add(i)
        elif t.text in ("if", "while", "switch", "for"):
            opening = i + 2 if i + 1 < len(tokens) and tokens[i + 1].text == "constexpr" else i + 1
            if opening in partners:
                cuts.add(partners[opening])
    first = 0
    for cut in sorted(cuts | {len(tokens) - 1}):
        if first <= cut:
            yield first, cut + 1
        first = cut + 1


def untouched(tokens, partners):
    """Indices of tokens that are left alone; see the tables above."""
    out = set()
    for i, t in enumerate(tokens):
        opening = i + 1
        if t.text == "[" and opening in partners and tokens[opening].text == "[":
            out.update(range(i, partners[opening] + 2))  # an attribute
        if t.kind != "name" or opening not in partners or tokens[opening].text != "(":
            continue
        closing = partners[opening]
        if t.text in UNTOUCHED_CALLS:
            out.update(range(opening, closing))
        elif t.text in CHECKS:
            depth_one = opening + 1
            while depth_one < closing and tokens[depth_one].text != ",":
                depth_one = partners.get(depth_one, depth_one) + 1
            out.update(range(depth_one, closing))
    skipped_body = -1
    for first, end in statements_of(tokens, partners):
        piece = tokens[first:end]
        words = {t.text for t in piece if t.kind == "name"}
        declared = {a.text for a, b in zip(piece, piece[1:]) if b.text == "="}
        a_size = "constexpr" in words and declared & set(SIZES)
        if first <= skipped_body or words & set(CHOICES) or "throw" in words or a_size:
            out.update(range(first, end))
        # The definition of a function that makes such a choice, whole.
        if words & set(CHOICES) and piece[-1].text == "{" and not words & {"if", "for", "while", "return", "switch"}:
            skipped_body = max(skipped_body, partners.get(end - 1, -1))
        # A sentence is put together.
        if any(t.kind == "literal" for t in piece):
            out.update(i for i in range(first, end) if tokens[i].text in ("+", "+="))
    return out


def changes_of(tokens, partners, i, text):
    """What token i can become."""
    t = tokens[i]
    before = tokens[i - 1] if i else None
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    if before is None or after is None or before.text in ("operator", "template"):
        return ()
    spaced = text[t.start - 1].isspace(), text[t.end : t.end + 1].isspace()

    if t.kind == "operator" and t.text in BINARY and all(spaced):
        return BINARY[t.text]
    sign = t.text == "-" and not spaced[1] and before.text in BEFORE_A_SIGN
    if sign and (after.kind != "operator" or after.text == "("):
        return ("",)
    if t.text == "!" and not spaced[1] and (after.kind == "name" or after.text in ("(", "!", "*")):
        return ("",)
    if t.kind == "name" and t.text in SWAPPED and after.text == "(":
        limits = before.text == "::" and tokens[i - 2].text == ">"  # numeric_limits<T>::max()
        declared = before.text not in ("return", "else") and before.kind == "name" or before.text in ("&", "*", ">")
        return () if limits or declared else (SWAPPED[t.text],)
    if t.kind == "number" and re.fullmatch(r"\d{1,9}", t.text):
        value = int(t.text)
        near = [n.text for n in (before, after) if n.kind == "operator"]
        bound = any(n in COMPARISONS or n in ("+", "-") for n in near)
        start = before.text == "=" and after.text in (";", ",") and in_head_of_for(tokens, partners, i)
        template = before.text == "<" and not text[before.end].isspace() or after.text == ">" and not spaced[1]
        if (bound or start) and not template:
            return (str(value + 1), str(value - 1)) if value else ("1",)
    return ()


def in_head_of_for(tokens, partners, i):
    """Whether token i stands in the first part of `for (...; ...; ...)`."""
    for j in range(i - 1, max(i - 40, 1), -1):
        if tokens[j].text in (";", "{", "}"):
            return False
        if tokens[j].text == "(" and tokens[j - 1].text == "for":
            return partners.get(j, -1) > i
    return False


def mutants_of(file, text):
    """Every mutant of one file, in its order."""
    tokens = tokens_of(text)
    partners = partners_of(tokens)
    left_out = untouched(tokens, partners)
    lines = [0] + [m.end() for m in re.finditer("\n", text)]
    seen = collections.Counter()
    for i, t in enumerate(tokens):
        if i in left_out:
            continue
        for new in changes_of(tokens, partners, i, text):
            line = bisect.bisect_right(lines, t.start)
            begin, end = lines[line - 1], (lines + [len(text) + 1])[line] - 1
            marked = "%s{%s => %s}%s" % (text[begin : t.start], t.text, new, text[t.end : end])
            marked = marked.strip()
            yield Mutant(file, line, t.start - begin + 1, t.start, t.text, new, marked, seen[marked])
            seen[marked] += 1


def drawn(mutants, seed):
    """All mutants in the order of the seed, one for each token."""
    taken = set()
    for m in sorted(mutants, key=lambda m: m.rank(seed)):
        if (m.file, m.start) not in taken:
            taken.add((m.file, m.start))
            yield m
