// The tokens of TorchScript's printed code.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nn/script/ast_internal.h"
#include "runtime/base/error.h"

namespace ramet::script {

/// Throws an Error at a place of a text.
template <class... Parts>
[[noreturn]] void fail_at(const Source& source, size_t offset, const Parts&... parts) {
  fail("torch::jit::load", source.place(offset), ": ", parts...);
}

struct Token {
  enum class Kind : uint8_t {
    kName,
    kInt,
    kFloat,
    kString,
    kSymbol,   // an operator or a bracket
    kNewline,  // the end of a statement's line
    kIndent,   // the next line lies further to the right: a block begins
    kDedent,   // a block ends
    kEnd,
  };
  Kind kind = Kind::kEnd;
  size_t offset = 0;
  std::string_view text;  // as it is written
  uint64_t number = 0;    // of kInt: at most 2**63, which is a number after a minus only
  double real = 0;        // of kFloat

  bool is(std::string_view symbol) const {
    return (kind == Kind::kSymbol || kind == Kind::kName) && text == symbol;
  }
  /// For errors: "\"x\"", "the end of the line".
  std::string shown() const;
};

/// Cuts a text into tokens, one at a time. Lines end only outside of brackets. Comments and empty
/// lines are left out.
class Lexer {
 public:
  /// `depth`: of brackets and of blocks.
  Lexer(const Source& source, int64_t depth);

  /// The token that is next; `take` goes on to the one after it.
  const Token& next() const { return token_; }
  Token take();
  /// The value of a token kString.
  std::string value_of_string(const Token& token) const;

 private:
  void advance();
  void skip_blank();
  bool begin_line();
  void name();
  void number();
  void string();
  void symbol();
  void finish(Token::Kind kind, size_t end);

  const Source& source_;
  const std::string& text_;
  int64_t depth_;
  Token token_;
  size_t at_ = 0;
  bool at_line_ = true;   // at the start of a line: its indentation is to be read
  std::string brackets_;  // that are open
  std::vector<size_t> indents_ = {0};
  size_t dedents_ = 0;  // that are still to be given out
};

}  // namespace ramet::script
