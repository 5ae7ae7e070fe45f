// The parser: a method for each part of the grammar, from files down to names.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nn/script/lexer_internal.h"

namespace ramet::script {

class Parser {
 public:
  Parser(const Source& source, const ParseLimits& limits);

  // parser_files.cc
  void file(FileSyntax& into);
  // parser_expressions.cc
  /// A type, and nothing after it.
  ExpressionPtr annotation();

 private:
  using Kind = Expression::Kind;
  /// Counts what is inside each other until the end of the scope.
  class Deeper {
   public:
    Deeper(Parser& parser, size_t offset) : parser_(parser) {
      if (++parser.depth_ > parser.limits_.depth) parser.too_deep(offset);
    }
    ~Deeper() { --parser_.depth_; }
    Deeper(const Deeper&) = delete;
    Deeper& operator=(const Deeper&) = delete;

   private:
    Parser& parser_;
  };

  // parser.cc
  const Token& next() const { return lexer_.next(); }
  bool at(std::string_view symbol) const { return next().is(symbol); }
  bool accept(std::string_view symbol);
  Token expect(std::string_view symbol);
  /// A name that is no keyword.
  Token expect_name(const char* what);
  /// An attribute's name. PyTorch prints those of modules that are called "in" or "for", too.
  Token expect_any_name();
  void expect_line_end();
  [[noreturn]] void unexpected(const char* expected) const;
  [[noreturn]] void too_deep(size_t offset) const;
  /// The trees of a chain (a.b.c, a + b + c) are as deep as it is long.
  void check_chain(int64_t links, size_t offset) const;

  // parser_files.cc
  std::shared_ptr<const ClassSyntax> class_definition();
  void class_line(ClassSyntax& into);
  void class_list(ClassSyntax& into, const Token& name);
  std::vector<std::string> names_of_list(const std::string& what);
  FunctionSyntaxPtr function();
  ParameterSyntax parameter(bool by_name);
  void attribute(AttributeSyntax& into);

  // parser_statements.cc
  Block block();
  void statement(Block& into);
  void simple(Statement& into);
  void assignment(Statement& into);
  void if_statement(Statement& into);
  void for_statement(Statement& into);
  void with_statement(Statement& into);
  void targets(Statement& into, ExpressionPtr first);
  void check_target(const Expression& target) const;

  // parser_expressions.cc
  ExpressionPtr make(Kind kind, size_t offset);
  /// With commas outside of brackets: a tuple.
  ExpressionPtr expressions();
  ExpressionPtr expression();
  ExpressionPtr binary(int least);
  ExpressionPtr unary();
  ExpressionPtr postfix();
  ExpressionPtr call(ExpressionPtr function);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr index();
  ExpressionPtr atom();
  ExpressionPtr name();
  ExpressionPtr texts();
  ExpressionPtr in_parentheses();
  ExpressionPtr list();
  ExpressionPtr dictionary();
  ExpressionPtr negated(ExpressionPtr operand, size_t offset);

  const Source& source_;
  const ParseLimits limits_;
  Lexer lexer_;
  int64_t depth_ = 0;
  int64_t count_ = 0;
  size_t after_minus_ = static_cast<size_t>(-1);  // where what follows the last minus begins
};

}  // namespace ramet::script
