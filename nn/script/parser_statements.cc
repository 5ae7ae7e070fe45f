#include "nn/script/parser_internal.h"

namespace ramet::script {

// The lines of a block, which are indented; or a statement of one line after the colon.
Block Parser::block() {
  Block body;
  expect(":");
  if (next().kind != Token::Kind::kNewline) {
    Statement only;
    only.offset = next().offset;
    simple(only);
    expect_line_end();
    body.push_back(std::move(only));
    return body;
  }
  lexer_.take();
  if (next().kind != Token::Kind::kIndent) unexpected("a line further to the right");
  const Deeper deeper(*this, next().offset);
  lexer_.take();
  while (next().kind != Token::Kind::kDedent) statement(body);
  lexer_.take();
  return body;
}

void Parser::statement(Block& into) {
  Statement made;
  made.offset = next().offset;
  if (at("if")) {
    if_statement(made);
  } else if (at("for")) {
    for_statement(made);
  } else if (accept("while")) {
    made.kind = Statement::Kind::kWhile;
    made.value = expression();
    made.body = block();
  } else if (at("with")) {
    with_statement(made);
  } else if (at("def")) {
    made.kind = Statement::Kind::kFunction;
    made.function = function();
  } else {
    simple(made);
    expect_line_end();
  }
  into.push_back(std::move(made));
}

// A statement of one line.
void Parser::simple(Statement& into) {
  const bool ends = next().kind == Token::Kind::kNewline;
  if (ends) unexpected("a statement");
  if (accept("return")) {
    into.kind = Statement::Kind::kReturn;
    if (next().kind != Token::Kind::kNewline) into.value = expressions();
  } else if (accept("pass")) {
    into.kind = Statement::Kind::kPass;
  } else if (accept("break")) {
    into.kind = Statement::Kind::kBreak;
  } else if (accept("continue")) {
    into.kind = Statement::Kind::kContinue;
  } else if (accept("assert")) {
    into.kind = Statement::Kind::kAssert;
    into.value = expression();
    if (accept(",")) into.message = expression();
  } else if (accept("raise")) {
    into.kind = Statement::Kind::kRaise;
    into.value = expression();
  } else if (accept("del")) {
    into.kind = Statement::Kind::kDelete;
    targets(into, expressions());
  } else {
    assignment(into);
  }
}

void Parser::assignment(Statement& into) {
  ExpressionPtr first = expressions();
  if (accept(":")) {
    into.kind = Statement::Kind::kAssign;
    check_target(*first);
    into.targets.push_back(std::move(first));
    into.type = expression();
    expect("=");
    into.value = expressions();
  } else if (accept("=")) {
    into.kind = Statement::Kind::kAssign;
    targets(into, std::move(first));
    into.value = expressions();
  } else {
    into.kind = Statement::Kind::kExpression;
    into.value = std::move(first);
  }
}

void Parser::if_statement(Statement& into) {
  into.kind = Statement::Kind::kIf;
  lexer_.take();
  into.value = expression();
  into.body = block();
  if (at("elif")) {
    const Deeper deeper(*this, next().offset);
    Statement other;
    other.offset = next().offset;
    if_statement(other);
    into.other.push_back(std::move(other));
  } else if (accept("else")) {
    into.other = block();
  }
}

void Parser::for_statement(Statement& into) {
  into.kind = Statement::Kind::kFor;
  expect("for");
  // The names alone: "in" would be read as an operator.
  ExpressionPtr tuple = make(Kind::kTuple, next().offset);
  bool comma = false;
  do {
    if (at("in") && comma) break;
    tuple->items.push_back(postfix());
    comma = at(",");
  } while (accept(","));
  into.unpacks = comma || tuple->items.size() > 1;
  if (into.unpacks) targets(into, std::move(tuple));
  else targets(into, std::move(tuple->items[0]));
  expect("in");
  into.value = expressions();
  into.body = block();
}

// `with a as x, b:` is `with a as x:` around `with b:`.
void Parser::with_statement(Statement& into) {
  into.kind = Statement::Kind::kWith;
  lexer_.take();
  into.value = expression();
  if (accept("as")) {
    ExpressionPtr target = postfix();
    check_target(*target);
    into.targets.push_back(std::move(target));
  }
  if (!at(",")) {
    into.body = block();
    return;
  }
  const Deeper deeper(*this, next().offset);
  Statement inner;
  inner.offset = next().offset;
  with_statement(inner);
  into.body.push_back(std::move(inner));
}

void Parser::targets(Statement& into, ExpressionPtr first) {
  check_target(*first);
  if (first->kind == Kind::kTuple) {
    into.unpacks = true;
    into.targets = std::move(first->items);
  } else {
    into.targets.push_back(std::move(first));
  }
}

void Parser::check_target(const Expression& target) const {
  switch (target.kind) {
    case Kind::kName:
    case Kind::kAttribute:
    case Kind::kSubscript: return;
    case Kind::kTuple:
      for (const ExpressionPtr& item : target.items) check_target(*item);
      return;
    default: fail_at(source_, target.offset, "got a value, expected the name of a variable to set");
  }
}

}  // namespace ramet::script
