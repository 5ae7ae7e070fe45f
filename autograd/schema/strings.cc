// Operators on strings. They work on bytes, as PyTorch's.
#include <sstream>

#include "autograd/schema/table_internal.h"
#include "autograd/schema/values_internal.h"
#include "runtime/base/classic.h"

namespace ramet::script {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";

bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_letter(char c) { return is_upper(c) || is_lower(c); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }
char upper(char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
char lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

template <class F> std::string mapped(std::string text, const F& f) {
  for (char& c : text) c = f(c);
  return text;
}
template <class F> bool all(const std::string& text, const F& f) {
  return !text.empty() && std::all_of(text.begin(), text.end(), f);
}
std::string titled(std::string text) {
  bool after_letter = false;
  for (char& c : text) {
    c = after_letter ? lower(c) : upper(c);
    after_letter = is_letter(c);
  }
  return text;
}
bool is_titled(const std::string& text) {
  return std::any_of(text.begin(), text.end(), is_letter) && titled(text) == text;
}
// Are all letters such, and is there one?
template <class F> bool cased(const std::string& text, const F& f) {
  bool some = false;
  for (const char c : text) {
    if (is_letter(c) && !f(c)) return false;
    some = some || is_letter(c);
  }
  return some;
}
std::string capitalized(std::string text) {
  text = mapped(std::move(text), lower);
  if (!text.empty()) text[0] = upper(text[0]);
  return text;
}
std::string swapped(char c) { return std::string(1, is_lower(c) ? upper(c) : lower(c)); }

std::string stripped(const std::string& text, const std::string& chars, bool left, bool right) {
  size_t begin = 0, end = text.size();
  while (left && begin < end && chars.find(text[begin]) != std::string::npos) ++begin;
  while (right && end > begin && chars.find(text[end - 1]) != std::string::npos) --end;
  return text.substr(begin, end - begin);
}

// The part that start and end of find(), count() and their like name. PyTorch's -1 for the end is
// its last place included.
struct Part {
  size_t begin, end;
};
Part part_of(const std::string& text, int64_t start, int64_t end) {
  const auto size = static_cast<int64_t>(text.size());
  if (end < 0) end = std::max<int64_t>(0, size + end + 1);
  if (start < 0) start = std::max<int64_t>(0, size + start);
  return {static_cast<size_t>(std::min(start, size)), static_cast<size_t>(std::min(end, size))};
}
int64_t find(const Call& a) {
  const Part part = part_of(a.text(0), a.integer(2), a.integer(3));
  const size_t at = a.text(0).find(a.text(1), part.begin);
  return at == std::string::npos || at + a.text(1).size() > part.end ? -1
                                                                     : static_cast<int64_t>(at);
}
int64_t find_last(const Call& a) {
  const Part part = part_of(a.text(0), a.integer(2), a.integer(3));
  if (part.end < part.begin + a.text(1).size()) return -1;
  const size_t at = a.text(0).rfind(a.text(1), part.end - a.text(1).size());
  return at == std::string::npos || at < part.begin ? -1 : static_cast<int64_t>(at);
}
int64_t found(int64_t at, const Call& a) {
  RAMET_CHECK(at >= 0, "str", "index: got '", a.text(1), "', expected a part of '", a.text(0), "'");
  return at;
}
bool starts(const Call& a) {
  const Part part = part_of(a.text(0), a.integer(2), a.integer(3));
  return part.begin + a.text(1).size() <= part.end &&
         a.text(0).compare(part.begin, a.text(1).size(), a.text(1)) == 0;
}
bool ends(const Call& a) {
  const Part part = part_of(a.text(0), a.integer(2), a.integer(3));
  return part.begin + a.text(1).size() <= part.end &&
         a.text(0).compare(part.end - a.text(1).size(), a.text(1).size(), a.text(1)) == 0;
}
int64_t count(const Call& a) {
  const Part part = part_of(a.text(0), a.integer(2), a.integer(3));
  const std::string& what = a.text(1);
  if (part.begin > part.end) return 0;
  if (what.empty()) return static_cast<int64_t>(part.end - part.begin) + 1;
  int64_t n = 0;
  for (size_t at = part.begin;
       (at = a.text(0).find(what, at)) != std::string::npos && at + what.size() <= part.end;
       at += what.size())
    ++n;
  return n;
}
std::string replaced(const Call& a) {
  const std::string &text = a.text(0), &old = a.text(1), &by = a.text(2);
  int64_t left = a.integer(3);
  std::string made;
  if (old.empty()) {  // between all characters
    for (size_t i = 0; i <= text.size(); ++i) {
      if (left-- != 0) made += by;
      if (i < text.size()) made += text[i];
    }
    return made;
  }
  size_t from = 0;
  for (size_t at; left-- != 0 && (at = text.find(old, from)) != std::string::npos;
       from = at + old.size())
    made.append(text, from, at - from).append(by);
  return made.append(text, from, std::string::npos);
}

IValue texts(std::vector<std::string> parts) {
  IValue::GenericList made;
  for (std::string& part : parts) made.push_back(std::move(part));
  return made;
}
// As PyTorch, which has no limit of parts here.
IValue split_at_blanks(const std::string& text) {
  std::vector<std::string> parts;
  size_t at = 0;
  for (;;) {
    while (at < text.size() && is_blank(text[at])) ++at;
    if (at == text.size()) return texts(std::move(parts));
    size_t end = at;
    while (end < text.size() && !is_blank(text[end])) ++end;
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
}
IValue split(const Call& a) {
  const std::string& text = a.text(0);
  int64_t most = a.integer(2);
  if (a.none(1)) return split_at_blanks(text);
  const std::string& between = a.text(1);
  RAMET_CHECK(!between.empty(), "str", "split: got an empty separator, expected characters");
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at; most-- != 0 && (at = text.find(between, from)) != std::string::npos;
       from = at + between.size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return texts(std::move(parts));
}
IValue split_last(const Call& a) {
  const std::string& text = a.text(0);
  const std::string between = a.none(1) ? " " : a.text(1);
  RAMET_CHECK(!between.empty(), "str", "rsplit: got an empty separator, expected characters");
  int64_t most = a.integer(2);
  std::vector<std::string> parts;
  size_t end = text.size();
  for (size_t at; most-- != 0 && end >= between.size() &&
                  (at = text.rfind(between, end - between.size())) != std::string::npos;
       end = at)
    parts.insert(parts.begin(), text.substr(at + between.size(), end - at - between.size()));
  parts.insert(parts.begin(), text.substr(0, end));
  return texts(std::move(parts));
}
// As PyTorch: each of these characters ends a line, so "\r\n" ends two. Ends that are kept are
// parts of their own.
IValue lines(const std::string& text, bool keep) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find_first_of("\n\r\v\f\x1c\x1d\x1e", at), text.size());
    parts.push_back(text.substr(at, end - at));
    if (keep && end < text.size()) parts.push_back(text.substr(end, 1));
    at = end + 1;
  }
  return texts(std::move(parts));
}
IValue partition(const std::string& text, const std::string& between, size_t at, bool last) {
  if (at == std::string::npos)
    return last ? result(std::vector<IValue>{"", "", text})
                : result(std::vector<IValue>{text, "", ""});
  return result(std::vector<IValue>{text.substr(0, at), between, text.substr(at + between.size())});
}
std::string joined(const std::string& between, const IValue& list) {
  std::string made;
  bool first = true;
  for (const IValue& item : list.toListRef()) {
    if (!first) made += between;
    made += item.toStringRef();
    first = false;
  }
  return made;
}
// How many characters the text lacks of the width.
int64_t missing(const std::string& text, int64_t width) {
  const auto size = static_cast<int64_t>(text.size());
  if (width <= size) return 0;
  RAMET_CHECK(width - size < int64_t{1} << 30, "str", "got a width of ", width,
              ", expected one below 2^30");
  return width - size;
}
std::string padded(const Call& a, int where) {  // -1: the text is left, 1: right, 0: centred
  const std::string& text = a.text(0);
  RAMET_CHECK(a.text(2).size() == 1, "str", "got '", a.text(2), "', expected one character");
  const int64_t free = missing(text, a.integer(1));
  // Of an odd number of characters, the one more is left of a text in an odd width, as in Python.
  const int64_t half = free / 2 + (free & a.integer(1) & 1);
  const int64_t left = where < 0 ? 0 : where > 0 ? free : half;
  const char fill = a.text(2)[0];
  return std::string(static_cast<size_t>(left), fill) + text +
         std::string(static_cast<size_t>(free - left), fill);
}
// Python keeps a sign before the zeros, PyTorch does not.
std::string zero_filled(const std::string& text, int64_t width) {
  return std::string(static_cast<size_t>(missing(text, width)), '0') + text;
}
std::string character(const std::string& text, int64_t index) {
  return std::string(1, text[place(index, text.size(), "str")]);
}
std::string slice(const Call& a) {
  const std::string& text = a.text(0);
  const Sliced taken =
      sliced(a.may_integer(1), a.may_integer(2), a.integer(3), static_cast<int64_t>(text.size()));
  std::string made;
  for (int64_t i = 0; i < taken.count; ++i)
    made += text[static_cast<size_t>(taken.first + i * taken.step)];
  return made;
}

std::string shown(const IValue& value) {
  std::string made;
  append_text(made, value);
  return made;
}
// "{}" of format() takes the next value.
std::string format(const Call& a) {
  const std::string& text = a.text(0);
  std::string made;
  size_t next = 1, from = 0;
  for (size_t at; (at = text.find("{}", from)) != std::string::npos; from = at + 2) {
    RAMET_CHECK(next < a.size(), "format", "got ", a.size() - 1, " values for '", text,
                "', expected more");
    made.append(text, from, at - from);
    append_text(made, a[next++]);
  }
  return made.append(text, from, std::string::npos);
}
// "%d %s %%" of the % operator.
std::string percent_format(const Call& a) {
  const std::string& text = a.text(0);
  std::string made;
  size_t next = 1;
  // One value, or a tuple of them.
  const std::vector<IValue>* const tuple =
      a.size() == 2 && a[1].isTuple() ? &a[1].toTupleRef().elements() : nullptr;
  const size_t count = tuple ? tuple->size() : a.size() - 1;
  const auto take = [&]() -> const IValue& {
    RAMET_CHECK(next <= count, "%", "got ", count, " values for '", text, "', expected more");
    const size_t i = next++;
    return tuple ? (*tuple)[i - 1] : a[i];
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      made += text[i];
      continue;
    }
    const char kind = ++i < text.size() ? text[i] : '\0';
    auto out = detail::classic<std::ostringstream>();
    if (kind == '%') out << '%';
    else if (kind == 'd' || kind == 'i') {
      const Scalar number = take().toScalar();
      if (number.isFloatingPoint()) out << static_cast<int64_t>(number.toDouble());
      else out << number.toLong();
    } else if (kind == 'e' || kind == 'f' || kind == 'E' || kind == 'F') {
      out << (kind == 'e' || kind == 'E' ? std::scientific : std::fixed);
      if (kind == 'E') out << std::uppercase;
      out << take().toScalar().toDouble();
    } else if (kind == 'c') {
      const IValue& value = take();
      if (value.isInt()) out << static_cast<char>(value.toInt());
      else out << value.toStringRef();
    } else {
      RAMET_CHECK(kind == 's', "%", "got the specifier '%", std::string(1, kind),
                  "', expected one of d, i, e, E, f, F, c, s");
      append_text(made, take());
    }
    made += out.str();
  }
  RAMET_CHECK(next == count + 1, "%", "got ", count, " values for '", text, "', expected ",
              next - 1);
  return made;
}

std::string digits(int64_t x, uint64_t base, const char* prefix) {
  std::string made;
  const uint64_t magnitude = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  for (uint64_t rest = magnitude; rest != 0 || made.empty(); rest /= base)
    made.insert(made.begin(), "0123456789abcdef"[rest % base]);
  return (x < 0 ? "-" : "") + (prefix + made);
}

#define RAMET_STR_TEST(name, ...) RAMET_LINE("aten::" name "(str self) -> bool", __VA_ARGS__)

const Line kStrings[] = {
    RAMET_LINE("aten::add.str(str a, str b) -> str", a.text(0) + a.text(1)),
    RAMET_LINE("aten::len.str(str s) -> int", static_cast<int64_t>(a.text(0).size())),
    RAMET_LINE("aten::__getitem__.str(str s, int index) -> str",
               character(a.text(0), a.integer(1))),
    RAMET_LINE("aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str",
               slice(a)),
    RAMET_LINE("aten::lower(str self) -> str", mapped(a.text(0), lower)),
    RAMET_LINE("aten::upper(str self) -> str", mapped(a.text(0), upper)),
    RAMET_LINE("aten::capitalize(str self) -> str", capitalized(a.text(0))),
    RAMET_LINE("aten::title(str self) -> str", titled(a.text(0))),
    RAMET_LINE("aten::swapcase(str self) -> str",
               mapped(a.text(0), [](char c) { return swapped(c)[0]; })),
    RAMET_STR_TEST("isdigit", all(a.text(0), is_digit)),
    RAMET_STR_TEST("isdecimal", all(a.text(0), is_digit)),
    RAMET_STR_TEST("isnumeric", all(a.text(0), is_digit)),
    RAMET_STR_TEST("isalpha", all(a.text(0), is_letter)),
    RAMET_STR_TEST("isalnum", all(a.text(0), [](char c) { return is_letter(c) || is_digit(c); })),
    RAMET_STR_TEST("isspace", all(a.text(0), is_blank)),
    RAMET_STR_TEST("isupper", cased(a.text(0), is_upper)),
    RAMET_STR_TEST("islower", cased(a.text(0), is_lower)),
    RAMET_STR_TEST("istitle", is_titled(a.text(0))),
    RAMET_LINE("aten::strip(str self, str chars=\" \n\t\f\v\") -> str",
               stripped(a.text(0), a.text(1), true, true)),
    RAMET_LINE("aten::lstrip(str self, str chars=\" \n\t\f\v\") -> str",
               stripped(a.text(0), a.text(1), true, false)),
    RAMET_LINE("aten::rstrip(str self, str chars=\" \n\t\f\v\") -> str",
               stripped(a.text(0), a.text(1), false, true)),
    RAMET_LINE("aten::find(str self, str substr, int start=0, int end=-1) -> int", find(a)),
    RAMET_LINE("aten::rfind(str self, str substr, int start=0, int end=-1) -> int", find_last(a)),
    RAMET_LINE("aten::index.str(str self, str substr, int start=0, int end=-1) -> int",
               found(find(a), a)),
    RAMET_LINE("aten::rindex(str self, str substr, int start=0, int end=-1) -> int",
               found(find_last(a), a)),
    RAMET_LINE("aten::startswith(str self, str substr, int start=0, int end=-1) -> bool",
               starts(a)),
    RAMET_LINE("aten::endswith(str self, str substr, int start=0, int end=-1) -> bool", ends(a)),
    RAMET_LINE("aten::count(str self, str substr, int start=0, int end=-1) -> int", count(a)),
    RAMET_LINE("aten::replace(str self, str old, str new, int max=-1) -> str", replaced(a)),
    RAMET_LINE("aten::split.str(str self, str? separator=None, int max=-1) -> str[]", split(a)),
    RAMET_LINE("aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]", split_last(a)),
    RAMET_LINE("aten::splitlines(str self, bool keepends=False) -> str[]",
               lines(a.text(0), a.truth(1))),
    RAMET_LINE("aten::partition(str self, str separator) -> (str, str, str)",
               partition(a.text(0), a.text(1), a.text(0).find(a.text(1)), false)),
    RAMET_LINE("aten::rpartition(str self, str separator) -> (str, str, str)",
               partition(a.text(0), a.text(1), a.text(0).rfind(a.text(1)), true)),
    RAMET_LINE("aten::join(str self, str[] values) -> str", joined(a.text(0), a[1])),
    RAMET_LINE("aten::ljust(str self, int width, str fillchar=\" \") -> str", padded(a, -1)),
    RAMET_LINE("aten::rjust(str self, int width, str fillchar=\" \") -> str", padded(a, 1)),
    RAMET_LINE("aten::center(str self, int width, str fillchar=\" \") -> str", padded(a, 0)),
    RAMET_LINE("aten::zfill(str self, int width) -> str", zero_filled(a.text(0), a.integer(1))),
    RAMET_LINE("aten::list(str t) -> str[]",
               [&] {
                 IValue::GenericList made;
                 for (const char c : a.text(0)) made.push_back(std::string(1, c));
                 return IValue(made);
               }()),
    RAMET_LINE("aten::str(t elem) -> str", shown(a[0])),
    RAMET_LINE("aten::format(str self, ...) -> str", format(a)),
    RAMET_LINE("aten::percentFormat(str self, ...) -> str", percent_format(a)),
    RAMET_LINE("aten::hex(int i) -> str", digits(a.integer(0), 16, "0x")),
    RAMET_LINE("aten::oct(int i) -> str", digits(a.integer(0), 8, "0o")),
    RAMET_LINE("aten::bin(int i) -> str", digits(a.integer(0), 2, "0b")),
    RAMET_LINE("aten::chr(int i) -> str", std::string(1, static_cast<char>(a.integer(0)))),
    RAMET_LINE("aten::ord(str string) -> int",
               [&] {
                 RAMET_CHECK(a.text(0).size() == 1, "ord", "got ", a.text(0).size(),
                             " characters, expected one");
                 return IValue(static_cast<int64_t>(static_cast<unsigned char>(a.text(0)[0])));
               }()),
};

}  // namespace

Lines lines_of_strings() { return kStrings; }

}  // namespace ramet::script
