#!/usr/bin/env python3
"""Every public name has a contract (tools/docs/contracts.py). Comments that are missing, of another kind, or above something else do
not count. The names are those of the LibTorch compatibility headers, too, which tests/tools/compat compares with clang's.

usage: reference_test.py   (in the repository's root, or a copy with its headers)
"""

import pathlib
import re
import sys

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).absolute().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools/docs"), str(ROOT / "tools/compat")]

import contracts  # noqa: E402
import cxx  # noqa: E402
import declarations  # noqa: E402
import names as compat_names  # noqa: E402
import pages  # noqa: E402

problems = []

# A header, and which of its names have no contract.
SAMPLE = """
namespace ramet {
/// Does a thing.
Tensor one(const Tensor& self);
Tensor one(const Tensor& self, int64_t dim);
Tensor& one_out(Tensor& out, const Tensor& self);
Tensor two(const Tensor& self);
/// Above an empty line.

Tensor three(const Tensor& self);
// Of another kind.
Tensor four(const Tensor& self);
/// Holds for all of them:
Tensor five(const Tensor& self);
Tensor six(const Tensor& self) { return five(self); /* not this one */ }

Tensor seven(const Tensor& self);
Tensor eight(const Tensor& self);  // behind it
namespace detail {
Tensor hidden(const Tensor& self);
}
/// A row. `first` is what comes first.
Tensor nine(); Tensor ten(); class Eleven { public: int first; int second; void go(); private: int third; };
/// Of options: `alpha` scales.
struct TwelveOptions {
  TwelveOptions(double alpha) : alpha_(alpha) {}
  public: auto alpha(double new_alpha)->decltype(*this) { this->alpha_ = static_cast<double&&>(new_alpha); return *this; } const double& alpha() const noexcept { return this->alpha_; } double& alpha() noexcept { return this->alpha_; } private: double alpha_ = 1;
  public: auto beta(double new_beta)->decltype(*this) { this->beta_ = static_cast<double&&>(new_beta); return *this; } const double& beta() const noexcept { return this->beta_; } double& beta() noexcept { return this->beta_; } private: double beta_ = 2;
};
/// A base.
class Base {
 public:
  /// What it does.
  virtual void run();
  virtual void stop();
};
/// One of them.
class Derived : public Base {
 public:
  ~Derived() override;
  void run() override;
  void stop() override;
  int width = 0, height = 0;  // in pixels
};
/// Colours.
enum class Colour { red, green };
enum class Shape {
  round,  // without corners
  square,
};
using Tint = Colour;
using Size = int64_t;
}
"""
WITHOUT = """two three four seven Eleven::second Eleven::go TwelveOptions::beta Base::stop Derived::stop Shape Shape::square
    Size""".split()  # yapf: disable


# What namespaces declare, types marked.
DECLARED = """
namespace ramet { class Y; enum E : int { a, b = f(1, 2), c }; enum class Scoped { d }; template <class T> struct Y<T*> { int e; };
typedef void (*Callback)(int); int g = 1, *h = &g; auto i() -> int { return 1; } Y::Y() : a{1}, b(2) {} Y::~Y() {}
template <class T> std::enable_if_t<(sizeof(T) > 4), T> j(T x = T{}, int y = int()); bool operator==(Y, Y); using z::k, z::l;
namespace m = z; namespace { int n; } struct Y o(); int p[2] = {1, 2}; R"x(int q;)x"_w r; extern "C" { int s(void); } }
"""
NAMES = "Y* E* a b c Scoped* Callback g h i j k l m o p r s"


def check(what, got, expected):
    if got != expected:
        problems.append("%s: got %s, expected %s" % (what, got, expected))


def sample():
    book = contracts.Book(declarations.of_text(SAMPLE))
    check("names without a contract", sorted(e.full.replace("ramet::", "") for e in book.without()), sorted(WITHOUT))
    check("hidden", book.names().get("ramet::detail::hidden"), None)
    check("private", book.names().get("ramet::Eleven::third"), None)
    check("where", [(e.file, e.line) for e in book.without() if e.name == "two"], [("x.h", 7)])
    check("a form", book.of("ramet::one_out"), ("Writes into `out`: Does a thing.", "form"))
    found = cxx.names(cxx.Reader(cxx.lines_of(DECLARED)).entries)
    check("declared", {n + "*" * t for n, t in found["ramet"].items()}, set(NAMES.split()))
    option = [e for e in book.entries if e.name == "alpha"]
    check("an option", [(e.kind, e.text) for e in option], [("option", "double alpha = 1")])


def unpaired(text):
    """Whether bars of absolute values are missing: those between blanks are others (`p(x | y)`)."""
    return re.sub(r" \| ", " ", " %s " % text).count("|") % 2 == 1


def bars():
    for text, wrong in (("|x|; not of bool", False), ("x| with a sign", True), ("1 - |x", True), ("a | b", False), ("log p(x | y) / ||x||", False)):
        check("bars of " + text, unpaired(text), wrong)


def cut_off():
    """A text that ends too soon is an error, no endless loop."""
    for text in ("namespace a { int x", "struct A { void f(", "enum E { a,"):
        try:
            cxx.Reader(cxx.lines_of(text))
            problems.append("no error: " + text)
        except SystemExit as error:
            check(text, str(error), "x.h ends inside a declaration")


def tree():
    book = contracts.load()
    missing = ["%s:%d: %s" % (e.file, e.line, e.full) for e in book.without()]
    if len(missing) > contracts.PROMISED:
        problems.append("%d names have no contract (///, one to three lines):\n%s" % (len(missing), "\n".join(missing)))
    for full in book.names():
        if unpaired(re.sub(r"`[^`]*`", "", book.text(full))):
            problems.append("%s: a bar `|` is missing in its contract: %s" % (full, book.text(full)))
    found = {e.full for e in book.entries}
    other = [compat_names.joined("ramet", space, name) for space, names in compat_names.found().items() for name in names]
    families = [prefix for family in pages.FAMILIES for prefix in family[3]]
    for header in sorted({e.header for e in book.entries}):
        if not header.startswith((*families, "ramet.h")):
            problems.append("%s is in no family of pages (FAMILIES in tools/docs/pages.py)" % header)
    text = "".join((ROOT / header).read_text() for header in {e.header for e in book.entries})
    only_declared = set(re.findall(r"^ *(?:class|struct) (\w+);", text, flags=re.M))
    for full in sorted(set(other) - found):
        if full.rpartition("::")[2] not in only_declared:
            problems.append("%s is not among the names that tools/docs/declarations.py finds" % full)
    print("docs: %d names, of which the compatibility headers have %d" % (len(book.names()), len(other)))


sample()
bars()
cut_off()
tree()
print("\n".join(problems) if problems else "OK")
sys.exit(1 if problems else 0)
