#include <algorithm>

#include "nn/script/parser_internal.h"

namespace ramet::script {
namespace {

bool is_list_of_names(std::string_view name) {
  return name == "__parameters__" || name == "__buffers__" || name == "__forward_hooks__" ||
         name == "__forward_pre_hooks__" || name == "__annotations__";
}

}  // namespace

void Parser::file(FileSyntax& into) {
  while (next().kind != Token::Kind::kEnd) {
    if (at("class")) {
      into.classes.push_back(class_definition());
    } else if (at("def")) {
      into.functions.push_back(function());
    } else if (accept("op_version_set")) {
      // Old texts state the version of their operators, as the archive does.
      expect("=");
      if (next().kind != Token::Kind::kInt) unexpected("a version");
      lexer_.take();
      expect_line_end();
    } else {
      unexpected("a class or a function");
    }
  }
}

std::shared_ptr<const ClassSyntax> Parser::class_definition() {
  expect("class");
  auto made = std::make_shared<ClassSyntax>();
  const Token name = expect_name("the name of a class");
  made->name = std::string(name.text);
  made->offset = name.offset;
  if (accept("(")) {
    if (!at(")")) made->base = std::string(expect_name("the name of a base class").text);
    // torch.nn.Module is Module.
    while (accept(".")) made->base = std::string(expect_name("the name of a base class").text);
    expect(")");
  }
  expect(":");
  if (next().kind != Token::Kind::kNewline) {
    expect("pass");
    expect_line_end();
    return made;
  }
  lexer_.take();
  if (next().kind != Token::Kind::kIndent) unexpected("a line further to the right");
  lexer_.take();
  while (next().kind != Token::Kind::kDedent) class_line(*made);
  lexer_.take();
  return made;
}

// A method, or a line `name : type`, `name : Final[type] = value`, `name = value` (of
// enumerations), `__buffers__ = ["a", ]`, `__annotations__["0"] = type`, `pass`.
void Parser::class_line(ClassSyntax& into) {
  if (at("def")) {
    into.methods.push_back(function());
    return;
  }
  if (!accept("pass")) {
    const Token name = expect_any_name();
    if (is_list_of_names(name.text)) {
      class_list(into, name);
    } else {
      AttributeSyntax made;
      made.name = std::string(name.text);
      made.offset = name.offset;
      if (!at(":") && !at("=")) unexpected("\":\" and a type, or \"=\" and a value");
      attribute(made);
      into.attributes.push_back(std::move(made));
    }
  }
  expect_line_end();
}

void Parser::class_list(ClassSyntax& into, const Token& name) {
  const std::string what(name.text);
  if (what == "__annotations__" && accept("[")) {
    AttributeSyntax made;
    made.offset = name.offset;
    if (next().kind != Token::Kind::kString) unexpected("the name of an attribute, in quotes");
    made.name = lexer_.value_of_string(lexer_.take());
    expect("]");
    expect("=");
    made.type = expression();
    into.attributes.push_back(std::move(made));
    return;
  }
  std::vector<std::string> names = names_of_list(what);
  if (what == "__parameters__") into.parameters = std::move(names);
  else if (what == "__buffers__") into.buffers = std::move(names), into.states_buffers = true;
  else if (what == "__forward_hooks__") into.hooks = std::move(names);
  else if (what == "__forward_pre_hooks__") into.pre_hooks = std::move(names);
}

std::vector<std::string> Parser::names_of_list(const std::string& what) {
  expect("=");
  std::vector<std::string> names;
  const ExpressionPtr value = list();
  for (const ExpressionPtr& item : value->items) {
    if (item->kind != Kind::kString)
      fail_at(source_, item->offset, "got no text in ", what, ", expected names in quotes");
    names.push_back(item->text);
  }
  return names;
}

// ": type", ": Final[type] = value" or "= value".
void Parser::attribute(AttributeSyntax& into) {
  if (accept(":")) {
    into.type = expression();
    Expression& type = *into.type;
    if (type.kind == Kind::kSubscript && type.items[0]->kind == Kind::kName &&
        type.items[0]->text == "Final") {
      if (type.items.size() != 2 || !type.items[1] || type.items[1]->kind == Kind::kSlice)
        fail_at(source_, type.offset, "got several types in Final[], expected one");
      into.constant = true;
      into.type = ExpressionPtr(std::move(type.items[1]));
    }
  }
  if (accept("=")) into.value = expressions();
  if (into.constant && !into.value)
    fail_at(source_, into.offset, "got the constant \"", into.name, "\" without a value");
}

FunctionSyntaxPtr Parser::function() {
  expect("def");
  auto made = std::make_shared<FunctionSyntax>();
  const Token name = expect_name("the name of a function");
  made->name = std::string(name.text);
  made->offset = name.offset;
  const Deeper deeper(*this, name.offset);
  expect("(");
  bool by_name = false;
  while (!at(")")) {
    if (accept("*")) {
      by_name = true;
    } else {
      made->parameters.push_back(parameter(by_name));
    }
    if (!at(")")) expect(",");
  }
  expect(")");
  if (accept("->")) made->result = expression();
  made->body = block();
  return made;
}

ParameterSyntax Parser::parameter(bool by_name) {
  ParameterSyntax made;
  made.by_name = by_name;
  made.name = std::string(expect_name("the name of a parameter").text);
  if (accept(":")) made.type = expression();
  if (accept("=")) made.value = expression();
  return made;
}

}  // namespace ramet::script
