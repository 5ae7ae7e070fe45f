#include <limits>

#include "nn/script/parser_internal.h"

namespace ramet::script {
namespace {

// How tightly operators bind, as in Python. 0: no operator.
constexpr int kOr = 1, kAnd = 2, kNot = 3, kCompare = 4;

int binds(const Token& token) {
  static constexpr struct {
    std::string_view symbol;
    int level;
  } kOperators[] = {{"or", kOr},      {"and", kAnd},    {"in", kCompare}, {"not", kCompare},
                    {"is", kCompare}, {"==", kCompare}, {"!=", kCompare}, {"<", kCompare},
                    {"<=", kCompare}, {">", kCompare},  {">=", kCompare}, {"|", 5},
                    {"^", 6},         {"&", 7},         {"<<", 8},        {">>", 8},
                    {"+", 9},         {"-", 9},         {"*", 10},        {"/", 10},
                    {"//", 10},       {"%", 10},        {"@", 10}};
  if (token.kind != Token::Kind::kSymbol && token.kind != Token::Kind::kName) return 0;
  for (const auto& o : kOperators)
    if (token.text == o.symbol) return o.level;
  return 0;
}

}  // namespace

ExpressionPtr Parser::make(Kind kind, size_t offset) {
  if (++count_ > limits_.expressions) {
    fail_at(source_, offset, "got more than ", limits_.expressions,
            " expressions in a text (a limit of load)");
  }
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->offset = offset;
  return made;
}

ExpressionPtr Parser::annotation() {
  ExpressionPtr type = expression();
  if (next().kind == Token::Kind::kNewline) lexer_.take();
  if (next().kind != Token::Kind::kEnd) unexpected("the end of a type");
  return type;
}

ExpressionPtr Parser::expressions() {
  ExpressionPtr first = expression();
  if (!at(",")) return first;
  ExpressionPtr tuple = make(Kind::kTuple, first->offset);
  tuple->items.push_back(std::move(first));
  while (accept(",")) {
    if (next().kind == Token::Kind::kNewline || at("=") || at("in")) break;
    tuple->items.push_back(expression());
  }
  return tuple;
}

ExpressionPtr Parser::expression() {
  const Deeper deeper(*this, next().offset);
  ExpressionPtr value = binary(kOr);
  if (!at("if")) return value;
  ExpressionPtr made = make(Kind::kConditional, lexer_.take().offset);
  made->items.push_back(std::move(value));
  made->items.push_back(binary(kOr));
  expect("else");
  made->items.push_back(expression());
  return made;
}

// Operators that bind at least so tightly.
ExpressionPtr Parser::binary(int least) {
  ExpressionPtr left;
  if (least <= kNot && at("not")) {
    const Token token = lexer_.take();
    const Deeper deeper(*this, token.offset);
    left = make(Kind::kUnary, token.offset);
    left->text = "not";
    left->items.push_back(binary(kNot));
  } else {
    left = unary();
  }
  int64_t links = 0;
  int before = 0;
  for (int level = binds(next()); level >= least && level > 0; level = binds(next())) {
    const Token token = lexer_.take();
    check_chain(++links, token.offset);
    // It would mean (a < b) and (b < c), which is never printed.
    if (level == kCompare && before == kCompare)
      fail_at(source_, token.offset, "got a chain of comparisons, expected one");
    before = level;
    std::string op(token.text);
    if (op == "not") {
      expect("in");
      op = "not in";
    } else if (op == "is" && accept("not")) {
      op = "is not";
    }
    const Deeper deeper(*this, token.offset);
    ExpressionPtr made = make(Kind::kBinary, token.offset);
    made->text = std::move(op);
    made->items.push_back(std::move(left));
    made->items.push_back(binary(level + 1));
    left = std::move(made);
  }
  return left;
}

// -x ** 2 is -(x ** 2).
ExpressionPtr Parser::unary() {
  if (at("-") || at("+") || at("~")) {
    const Token token = lexer_.take();
    const Deeper deeper(*this, token.offset);
    if (token.text == "-") {
      after_minus_ = next().offset;
      return negated(unary(), token.offset);
    }
    ExpressionPtr made = make(Kind::kUnary, token.offset);
    made->text = std::string(token.text);
    made->items.push_back(unary());
    return made;
  }
  ExpressionPtr base = postfix();
  if (!at("**")) return base;
  const Token token = lexer_.take();
  const Deeper deeper(*this, token.offset);
  if (base->kind == Kind::kInt && base->number < 0 && base->offset == after_minus_)
    fail_at(source_, base->offset, "got an integer of more than 64 bits");
  ExpressionPtr made = make(Kind::kBinary, token.offset);
  made->text = "**";
  made->items.push_back(std::move(base));
  made->items.push_back(unary());
  return made;
}

// A number with its minus is one number: 2**63 has none without it.
ExpressionPtr Parser::negated(ExpressionPtr operand, size_t offset) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  if (operand->kind == Kind::kFloat) {
    operand->real = -operand->real;
  } else if (operand->kind == Kind::kInt && operand->number != kLeast) {
    operand->number = -operand->number;
  } else if (operand->kind != Kind::kInt || operand->offset != after_minus_) {
    ExpressionPtr made = make(Kind::kUnary, offset);
    made->text = "-";
    made->items.push_back(std::move(operand));
    return made;
  }
  operand->offset = offset;
  return operand;
}

ExpressionPtr Parser::postfix() {
  ExpressionPtr value = atom();
  for (int64_t links = 1;; ++links) {
    if (at("(")) {
      value = call(std::move(value));
    } else if (at("[")) {
      value = subscript(std::move(value));
    } else if (at(".")) {
      ExpressionPtr made = make(Kind::kAttribute, lexer_.take().offset);
      made->text = std::string(expect_any_name().text);
      made->items.push_back(std::move(value));
      value = std::move(made);
    } else {
      return value;
    }
    check_chain(links, value->offset);
  }
}

ExpressionPtr Parser::call(ExpressionPtr function) {
  ExpressionPtr made = make(Kind::kCall, expect("(").offset);
  made->items.push_back(std::move(function));
  while (!at(")")) {
    ExpressionPtr value = expression();
    if (accept("=")) {
      if (value->kind != Kind::kName)
        fail_at(source_, value->offset, "got \"=\" after an expression, expected a name before it");
      Named argument;
      argument.name = std::move(value->text);
      argument.value = expression();
      made->named.push_back(std::move(argument));
    } else if (!made->named.empty()) {
      fail_at(source_, value->offset, "got an argument without a name after one with a name");
    } else {
      made->items.push_back(std::move(value));
    }
    if (!at(")")) expect(",");
  }
  expect(")");
  return made;
}

ExpressionPtr Parser::subscript(ExpressionPtr value) {
  ExpressionPtr made = make(Kind::kSubscript, expect("[").offset);
  made->items.push_back(std::move(value));
  do {
    if (at("]") && made->items.size() > 1) break;
    made->items.push_back(index());
  } while (accept(","));
  expect("]");
  return made;
}

// What a subscript may have between its commas: an expression, or a slice.
ExpressionPtr Parser::index() {
  const size_t offset = next().offset;
  ExpressionPtr first = at(":") ? nullptr : expression();
  if (!at(":")) return first;
  ExpressionPtr slice = make(Kind::kSlice, offset);
  slice->items.push_back(std::move(first));
  for (int part = 0; part < 2; ++part) {
    const bool given = accept(":") && !at(":") && !at("]") && !at(",");
    slice->items.push_back(given ? expression() : nullptr);
  }
  return slice;
}

ExpressionPtr Parser::atom() {
  switch (next().kind) {
    case Token::Kind::kName: return name();
    case Token::Kind::kString: return texts();
    case Token::Kind::kInt: {
      const Token token = lexer_.take();
      ExpressionPtr made = make(Kind::kInt, token.offset);
      // 2**63 becomes the least number: the minus before it stays without effect.
      made->number = static_cast<int64_t>(token.number);
      if (made->number < 0 && token.offset != after_minus_)
        fail_at(source_, token.offset, "got an integer of more than 64 bits");
      return made;
    }
    case Token::Kind::kFloat: {
      const Token token = lexer_.take();
      ExpressionPtr made = make(Kind::kFloat, token.offset);
      made->real = token.real;
      return made;
    }
    default: break;
  }
  if (at("(")) return in_parentheses();
  if (at("[")) return list();
  if (at("{")) return dictionary();
  if (at("...")) return make(Kind::kEllipsis, lexer_.take().offset);
  unexpected("an expression");
}

ExpressionPtr Parser::name() {
  static constexpr struct {
    std::string_view text;
    Kind kind;
  } kConstants[] = {{"True", Kind::kTrue},
                    {"False", Kind::kFalse},
                    {"None", Kind::kNone},
                    {"inf", Kind::kFloat},
                    {"nan", Kind::kFloat}};
  for (const auto& c : kConstants) {
    if (!at(c.text)) continue;
    ExpressionPtr made = make(c.kind, lexer_.take().offset);
    if (c.text == "inf") made->real = std::numeric_limits<double>::infinity();
    if (c.text == "nan") made->real = std::numeric_limits<double>::quiet_NaN();
    return made;
  }
  const Token token = expect_name("an expression");
  ExpressionPtr made = make(Kind::kName, token.offset);
  made->text = std::string(token.text);
  return made;
}

// Texts next to one another are one.
ExpressionPtr Parser::texts() {
  ExpressionPtr made = make(Kind::kString, next().offset);
  while (next().kind == Token::Kind::kString) made->text += lexer_.value_of_string(lexer_.take());
  return made;
}

// A tuple, or an expression as it is.
ExpressionPtr Parser::in_parentheses() {
  const size_t offset = expect("(").offset;
  ExpressionPtr tuple = make(Kind::kTuple, offset);
  while (!at(")")) {
    ExpressionPtr value = expression();
    if (at(")") && tuple->items.empty()) {
      expect(")");
      return value;
    }
    tuple->items.push_back(std::move(value));
    if (!at(")")) expect(",");
  }
  expect(")");
  return tuple;
}

ExpressionPtr Parser::list() {
  ExpressionPtr made = make(Kind::kList, expect("[").offset);
  while (!at("]")) {
    made->items.push_back(expression());
    if (!at("]")) expect(",");
  }
  expect("]");
  return made;
}

ExpressionPtr Parser::dictionary() {
  ExpressionPtr made = make(Kind::kDict, expect("{").offset);
  while (!at("}")) {
    Named entry;
    entry.key = expression();
    expect(":");
    entry.value = expression();
    made->named.push_back(std::move(entry));
    if (!at("}")) expect(",");
  }
  expect("}");
  return made;
}

}  // namespace ramet::script
