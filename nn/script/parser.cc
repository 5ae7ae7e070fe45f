#include <algorithm>

#include "nn/formats/zip/zip_internal.h"
#include "nn/script/parser_internal.h"

namespace ramet::script {
namespace {

// Those of PyTorch's language. Python has more, which are names here: modules are called so.
constexpr std::string_view kKeywords[] = {
    "False",  "None", "True", "and",  "as",    "assert", "break",  "class", "continue",
    "def",    "del",  "elif", "else", "for",   "if",     "import", "in",    "is",
    "global", "not",  "or",   "pass", "raise", "return", "while",  "with"};

void check_text(const Source& source, const ParseLimits& limits) {
  const std::string& text = source.text;
  if (text.size() > static_cast<uint64_t>(limits.bytes)) {
    fail("torch::jit::load", source.name, ": got a text of ", text.size(),
         " bytes, expected at most ", limits.bytes, " (a limit of load)");
  }
  const size_t zero = text.find('\0');
  if (zero != std::string::npos)
    fail_at(source, zero, "got a character 0, expected a text of a program");
  if (!formats::detail::is_utf8(text))
    fail("torch::jit::load", source.name, ": got bytes that are no valid UTF-8");
}

}  // namespace

Parser::Parser(const Source& source, const ParseLimits& limits)
    : source_(source), limits_(limits), lexer_(source, limits.depth) {}

bool Parser::accept(std::string_view symbol) {
  if (!at(symbol)) return false;
  lexer_.take();
  return true;
}

Token Parser::expect(std::string_view symbol) {
  if (!at(symbol))
    fail_at(source_, next().offset, "got ", next().shown(), ", expected \"", symbol, "\"");
  return lexer_.take();
}

Token Parser::expect_name(const char* what) {
  if (next().kind != Token::Kind::kName ||
      std::find(std::begin(kKeywords), std::end(kKeywords), next().text) != std::end(kKeywords)) {
    unexpected(what);
  }
  return lexer_.take();
}

Token Parser::expect_any_name() {
  if (next().kind != Token::Kind::kName) unexpected("the name of an attribute");
  return lexer_.take();
}

void Parser::expect_line_end() {
  if (next().kind != Token::Kind::kNewline) unexpected("the end of the line");
  lexer_.take();
}

void Parser::unexpected(const char* expected) const {
  fail_at(source_, next().offset, "got ", next().shown(), ", expected ", expected);
}

void Parser::too_deep(size_t offset) const {
  fail_at(source_, offset, "got more than ", limits_.depth,
          " expressions or blocks inside each other (a limit of load)");
}

void Parser::check_chain(int64_t links, size_t offset) const {
  if (depth_ + links > limits_.depth) too_deep(offset);
}

FileSyntax parse(SourcePtr source, const ParseLimits& limits) {
  check_text(*source, limits);
  FileSyntax file;
  file.source = source;
  Parser(*source, limits).file(file);
  return file;
}

ExpressionPtr parse_annotation(const Source& source, const ParseLimits& limits) {
  check_text(source, limits);
  return Parser(source, limits).annotation();
}

}  // namespace ramet::script
