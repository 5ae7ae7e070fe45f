// The words of the text that a graph is printed as.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <sstream>

#include "nn/script/exported/exported_internal.h"

namespace ramet::script {
namespace {

// Words of the language, and names that mean something in it.
constexpr const char* kTaken[] = {"Any",
                                  "CONSTANTS",
                                  "Dict",
                                  "Device",
                                  "False",
                                  "Final",
                                  "Future",
                                  "List",
                                  "None",
                                  "Optional",
                                  "Tensor",
                                  "True",
                                  "Tuple",
                                  "Union",
                                  "and",
                                  "annotate",
                                  "as",
                                  "assert",
                                  "async",
                                  "await",
                                  "bool",
                                  "break",
                                  "class",
                                  "continue",
                                  "def",
                                  "del",
                                  "elif",
                                  "else",
                                  "except",
                                  "finally",
                                  "float",
                                  "for",
                                  "fork",
                                  "from",
                                  "getattr",
                                  "global",
                                  "hasattr",
                                  "if",
                                  "import",
                                  "in",
                                  "inf",
                                  "int",
                                  "is",
                                  "isinstance",
                                  "lambda",
                                  "len",
                                  "nan",
                                  "nonlocal",
                                  "not",
                                  "number",
                                  "ops",
                                  "or",
                                  "pass",
                                  "print",
                                  "raise",
                                  "range",
                                  "return",
                                  "self",
                                  "str",
                                  "torch",
                                  "try",
                                  "unchecked_cast",
                                  "uninitialized",
                                  "while",
                                  "with",
                                  "yield",
                                  "__torch__",
                                  "forward",
                                  "training"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool Namer::is_identifier(const std::string& name) {
  return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), [](char c) {
    return is_letter(c) || is_digit(c);
  }) && std::none_of(std::begin(kTaken), std::end(kTaken), [&](const char* word) {
    return name == word;
  });
}

std::string Namer::unique(const std::string& name) {
  std::string base = name.substr(0, 200);
  for (char& c : base)
    if (!is_letter(c) && !is_digit(c)) c = '_';
  if (base.empty() || is_digit(base[0])) base.insert(0, "v");
  std::string made = base;
  for (int64_t i = next_[base]; !is_identifier(made) || taken_.count(made) != 0; ++i) {
    made = base + "_" + std::to_string(i);
    next_[base] = i + 1;
  }
  taken_.insert(made);
  return made;
}

std::string quoted(const std::string& text) {
  std::string made = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      made += '\\';
      made += c;
    } else if (c == '\n') {
      made += "\\n";
    } else if (byte < 32 || byte > 126) {
      char octal[8];
      std::snprintf(octal, sizeof octal, "\\%03o", byte);
      made += octal;
    } else {
      made += c;
    }
  }
  return made + '"';
}

std::string format_part(std::string text) {
  for (size_t at = text.find("{}"); at != std::string::npos; at = text.find("{}", at))
    text.insert(at + 1, " ");
  return text;
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  auto out = detail::classic<std::ostringstream>();
  out.precision(17);
  out << value;
  std::string text = out.str();
  if (text.find_first_of(".e") == std::string::npos) text += '.';
  return text;
}

void PrintedLines::add(int indent, const std::string& line, const Source::Origin& from) {
  origins.push_back({text.size(), from.file, from.line});
  text.append(static_cast<size_t>(2 * indent), ' ').append(line) += '\n';
}

void PrintedLines::add(const PrintedLines& more) {
  for (const Source::Origin& o : more.origins)
    origins.push_back({text.size() + o.offset, o.file, o.line});
  text += more.text;
}

}  // namespace ramet::script
