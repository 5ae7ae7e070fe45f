#include <algorithm>
#include <utility>

#include "nn/script/lexer_internal.h"
#include "runtime/base/classic.h"

namespace ramet::script {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  const char l = detail::lower(c);
  return (l >= 'a' && l <= 'z') || c == '_';
}
bool is_name(char c) { return starts_name(c) || is_digit(c); }

// Longer ones first.
constexpr std::string_view kSymbols[] = {
    "...", "**", "//", "->", "==", "!=", "<=", ">=", "<<", ">>", "(", ")", "[", "]", "{", "}",
    ",",   ":",  ".",  "=",  "+",  "-",  "*",  "/",  "%",  "@",  "&", "|", "^", "~", "<", ">"};

constexpr uint64_t kMost = uint64_t{1} << 63;

int octal_or_hex(char c) {
  if (is_digit(c)) return c - '0';
  const char l = detail::lower(c);
  return l >= 'a' && l <= 'f' ? l - 'a' + 10 : 16;
}

}  // namespace

std::string Token::shown() const {
  switch (kind) {
    case Kind::kNewline: return "the end of the line";
    case Kind::kIndent: return "a line further to the right";
    case Kind::kDedent: return "the end of the block";
    case Kind::kEnd: return "the end of the text";
    default: return '"' + std::string(text.substr(0, 60)) + (text.size() > 60 ? "...\"" : "\"");
  }
}

Lexer::Lexer(const Source& source, int64_t depth)
    : source_(source), text_(source.text), depth_(depth) {
  advance();
}

Token Lexer::take() {
  Token token = token_;
  advance();
  return token;
}

void Lexer::finish(Token::Kind kind, size_t end) {
  token_.kind = kind;
  token_.offset = at_;
  token_.text = std::string_view(text_).substr(at_, end - at_);
  at_ = end;
}

// Spaces and comments; inside of brackets lines, too.
void Lexer::skip_blank() {
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '#') {
      while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
    } else if (c != ' ' && c != '\t' && c != '\r' && (c != '\n' || brackets_.empty())) {
      return;
    }
  }
}

// Reads the indentation of the next line that is not empty. Was that another than before?
bool Lexer::begin_line() {
  size_t start = at_;
  for (; at_ < text_.size(); ++at_) {
    const char c = text_[at_];
    if (c == '\n') start = at_ + 1;
    else if (c == '#') skip_blank(), --at_;
    else if (c == '\t') fail_at(source_, at_, "got a tab, expected spaces before a statement");
    else if (c != ' ' && c != '\r') break;
  }
  at_line_ = false;
  const size_t indent = at_ < text_.size() ? at_ - start : 0;
  if (indent == indents_.back()) return false;
  if (indent > indents_.back()) {
    if (static_cast<int64_t>(indents_.size()) > depth_)
      fail_at(source_, at_, "got more than ", depth_, " blocks inside each other");
    indents_.push_back(indent);
    finish(Token::Kind::kIndent, at_);
    return true;
  }
  for (; indents_.back() > indent; ++dedents_) indents_.pop_back();
  if (indents_.back() != indent) {
    fail_at(source_, at_, "got a line after ", indent, " spaces, expected ", indents_.back(),
            " as in a block around it");
  }
  return false;
}

void Lexer::advance() {
  if (at_line_ && !dedents_ && begin_line()) return;
  if (dedents_) {
    --dedents_;
    return finish(Token::Kind::kDedent, at_);
  }
  skip_blank();
  if (at_ >= text_.size()) {
    if (!brackets_.empty())
      fail_at(source_, at_, "got the end of the text after an open \"", brackets_.back(), "\"");
    // The last line may lack its end.
    if (token_.kind != Token::Kind::kNewline && token_.kind != Token::Kind::kDedent &&
        token_.kind != Token::Kind::kEnd && !text_.empty()) {
      return finish(Token::Kind::kNewline, at_);
    }
    if (indents_.size() > 1) {
      indents_.pop_back();
      return finish(Token::Kind::kDedent, at_);
    }
    return finish(Token::Kind::kEnd, at_);
  }
  const char c = text_[at_];
  if (c == '\n') {
    at_line_ = true;
    finish(Token::Kind::kNewline, at_ + 1);
  } else if (starts_name(c)) {
    name();
  } else if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
    number();
  } else if (c == '"' || c == '\'') {
    string();
  } else {
    symbol();
  }
}

void Lexer::name() {
  size_t end = at_;
  while (end < text_.size() && is_name(text_[end])) ++end;
  finish(Token::Kind::kName, end);
}

void Lexer::number() {
  const auto digits = [&](size_t from) {
    while (from < text_.size() && is_digit(text_[from])) ++from;
    return from;
  };
  const size_t whole = digits(at_);
  size_t end = whole;
  if (end < text_.size() && text_[end] == '.') end = digits(end + 1);
  if (end < text_.size() && detail::lower(text_[end]) == 'e') {
    size_t exponent = end + 1;
    if (exponent < text_.size() && (text_[exponent] == '-' || text_[exponent] == '+')) ++exponent;
    if (digits(exponent) == exponent)
      fail_at(source_, at_, "got a number without the digits of its exponent");
    end = digits(exponent);
  }
  if (end < text_.size() && detail::lower(text_[end]) == 'j')
    fail_at(source_, at_, "got a complex number, which this library does not have");
  if (end < text_.size() && is_name(text_[end])) {
    fail_at(source_, at_, "got \"", text_.substr(at_, std::min<size_t>(end + 1 - at_, 60)),
            "\", expected a decimal number");
  }
  if (end == whole) {
    uint64_t value = 0;
    for (size_t i = at_; i < end; ++i) {
      const auto digit = static_cast<uint64_t>(text_[i] - '0');
      if (value > (kMost - digit) / 10)
        fail_at(source_, at_, "got an integer of more than 64 bits");
      value = value * 10 + digit;
    }
    token_.number = value;
    return finish(Token::Kind::kInt, end);
  }
  if (end - at_ > 1000) fail_at(source_, at_, "got a number of ", end - at_, " characters");
  token_.real = detail::read_double(text_.substr(at_, end - at_).c_str(), nullptr);
  finish(Token::Kind::kFloat, end);
}

void Lexer::string() {
  const char quote = text_[at_];
  size_t end = at_ + 1;
  for (; end < text_.size() && text_[end] != quote; ++end) {
    if (text_[end] == '\n') break;
    if (text_[end] == '\\') ++end;
  }
  if (end >= text_.size() || text_[end] != quote)
    fail_at(source_, at_, "got a text in quotes without its end");
  finish(Token::Kind::kString, end + 1);
}

void Lexer::symbol() {
  for (const std::string_view s : kSymbols) {
    if (text_.compare(at_, s.size(), s) != 0) continue;
    const char c = s.size() == 1 ? s[0] : '\0';
    if (c == '(' || c == '[' || c == '{') {
      if (static_cast<int64_t>(brackets_.size()) >= depth_)
        fail_at(source_, at_, "got more than ", depth_, " brackets inside each other");
      brackets_ += c;
    } else if (c == ')' || c == ']' || c == '}') {
      const char open = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (brackets_.empty() || brackets_.back() != open)
        fail_at(source_, at_, "got \"", c, "\" without an open \"", open, "\"");
      brackets_.pop_back();
    }
    return finish(Token::Kind::kSymbol, at_ + s.size());
  }
  fail_at(source_, at_, "got the character \"", text_[at_],
          "\", which this language does not have");
}

std::string Lexer::value_of_string(const Token& token) const {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"\n", kValues = "\a\b\f\n\r\t\v\\'\"";
  const std::string_view in = token.text.substr(1, token.text.size() - 2);
  std::string out;
  out.reserve(in.size());
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] != '\\') {
      out += in[i];
      continue;
    }
    const char c = in[++i];
    const bool hex = c == 'x';
    if (hex || (c >= '0' && c <= '7')) {
      int value = 0, base = hex ? 16 : 8;
      size_t digits = hex ? 2 : 3, used = 0;
      if (hex) ++i;
      for (; used < digits && i + used < in.size() && octal_or_hex(in[i + used]) < base; ++used)
        value = value * base + octal_or_hex(in[i + used]);
      if ((hex && used < 2) || value > 255)
        fail_at(source_, token.offset + i, "got an escape of no byte in a text");
      out += static_cast<char>(value);
      i += used - 1;
    } else if (c != '\n') {  // a line that goes on
      const size_t letter = kLetters.find(c);
      if (letter == std::string_view::npos)
        fail_at(source_, token.offset + i, "got the escape \"\\", c, "\", which texts do not have");
      out += kValues[letter];
    }
  }
  return out;
}

}  // namespace ramet::script
