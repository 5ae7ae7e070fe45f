#include <algorithm>
#include <cstdio>
#include <cstring>

#include "nn/formats/pytorch/pickle_internal.h"
#include "nn/formats/zip/zip_internal.h"

namespace ramet::formats::detail {
namespace {

constexpr size_t kBuffer = 1 << 16;
constexpr uint64_t kMaxLine = 4096;  // of a global's names
constexpr uint64_t kMostCopies = uint64_t{1} << 24;

// The name of an opcode that is not supported here, for the reason of a refusal.
const char* other_opcode(uint8_t c) {
  switch (c) {
    case 'F':
    case 'I':
    case 'L':
    case 'S':
    case 'V':
    case 'g':
    case 'p':
    case 'P': return "an opcode of protocol 0, in which PyTorch writes nothing";
    case 'i':
    case 'o': return "INST or OBJ, which make objects of any class";
    case 0x82:
    case 0x83:
    case 0x84: return "EXT, which names a class by a number";
    case 0x97:
    case 0x98: return "a buffer outside the pickle";
    default: return "no opcode";
  }
}

}  // namespace

std::string Node::kind() const {
  if (const auto* s = std::get_if<std::string>(&value))
    return "the text \"" + s->substr(0, 60) + "\"";
  if (const auto* g = std::get_if<NodeGlobal>(&value)) return "the global \"" + g->name + "\"";
  if (const auto* o = std::get_if<std::unique_ptr<NodeObject>>(&value))
    return "an object of \"" + (*o)->name + "\"";
  if (const auto* o = std::get_if<NodeOpaque>(&value)) return "\"" + o->name + "\"";
  static const char* const names[] = {"None",
                                      "a bool",
                                      "an integer",
                                      "a float",
                                      "a text",
                                      "a list",
                                      "a tuple",
                                      "a dictionary",
                                      "an object",
                                      "a global",
                                      "a storage",
                                      "a tensor",
                                      "an integer of more than 64 bits",
                                      "a mark",
                                      "an opaque value",
                                      "a device"};
  return names[value.index()];
}

// ---- bytes --------------------------------------------------------------------------------------

uint8_t Pickle::byte() {
  if (at_ < buffer_at_ || at_ >= buffer_at_ + buffer_.size()) {
    if (at_ >= in_.size())
      place_.bad(at_, "the pickle ends in the middle, expected its end (STOP)");
    buffer_.resize(std::min<uint64_t>(kBuffer, in_.size() - at_));
    buffer_at_ = at_;
    in_.read(at_, buffer_.data(), buffer_.size());
  }
  return static_cast<uint8_t>(buffer_[at_++ - buffer_at_]);
}

uint64_t Pickle::number(int bytes) {
  uint64_t n = 0;
  for (int i = 0; i < bytes; ++i) n |= uint64_t{byte()} << (8 * i);
  return n;
}

std::string Pickle::bytes(uint64_t n, const char* what) {
  if (n > in_.size() - at_) {
    place_.bad(opcode_at_, "got ", what, " of ", n, " bytes, expected at most the ",
               in_.size() - at_, " that are left");
  }
  std::string s(n, ' ');
  in_.read(at_, s.data(), n);
  at_ += n;
  return s;
}

std::string Pickle::line() {
  std::string s;
  for (char c; (c = static_cast<char>(byte())) != '\n';) {
    s += c;
    if (s.size() > kMaxLine) place_.bad(opcode_at_, "got a name of more than ", kMaxLine, " bytes");
  }
  return s;
}

// ---- the stack ----------------------------------------------------------------------------------

Node* Pickle::make(decltype(Node::value) value) {
  Node& n = nodes_.emplace_back();
  n.value = std::move(value);
  n.at = opcode_at_;
  return &n;
}

Node* Pickle::top() {
  if (stack_.empty() || stack_.back()->as<NodeMark>())
    place_.bad(opcode_at_, "got nothing on the stack, expected a value");
  return stack_.back();
}
Node* Pickle::pop() {
  Node* n = top();
  stack_.pop_back();
  return n;
}

std::vector<Node*> Pickle::pop_mark() {
  size_t i = stack_.size();
  while (i > 0 && !stack_[i - 1]->as<NodeMark>()) --i;
  if (i == 0) place_.bad(opcode_at_, "got no mark on the stack, expected one");
  std::vector<Node*> items(stack_.begin() + static_cast<std::ptrdiff_t>(i), stack_.end());
  stack_.resize(i - 1);
  return items;
}

void Pickle::remember(uint64_t index) { memo_[index] = top(); }

void Pickle::set_items(Node* dict, const std::vector<Node*>& items) {
  if (dict->as<NodeOpaque>()) return;
  auto* d = dict->as<NodeDict>();
  if (!d) place_.bad(opcode_at_, "got ", dict->kind(), ", expected a dictionary to put items into");
  if (items.size() % 2) place_.bad(opcode_at_, "got a key without a value");
  for (size_t i = 0; i < items.size(); i += 2) d->items.emplace_back(items[i], items[i + 1]);
}

void Pickle::append(Node* list, const std::vector<Node*>& items) {
  if (list->as<NodeOpaque>()) return;
  auto* l = list->as<NodeList>();
  if (!l) place_.bad(opcode_at_, "got ", list->kind(), ", expected a list to append to");
  l->items.insert(l->items.end(), items.begin(), items.end());
}

// Called before so many bytes of the memo's contents are copied.
void Pickle::copying(uint64_t bytes) {
  copied_ += bytes;
  if (copied_ > 16 * in_.size() + kMostCopies)
    place_.bad(opcode_at_, "got calls with the same long arguments very many times");
}

// ---- the machine --------------------------------------------------------------------------------

Node* Pickle::run(uint64_t& at) {
  at_ = at;
  stack_.clear();
  memo_.clear();
  opcode_at_ = at_;
  if (byte() != 0x80) place_.bad(at, "got no pickle, expected one of protocol 2 to 5");
  const int protocol = byte();
  if (protocol < 2 || protocol > 5)
    place_.bad(at, "got a pickle of protocol ", protocol, ", expected 2 to 5");
  for (;;) {
    opcode_at_ = at_;
    const uint8_t opcode = byte();
    if (opcode == '.') break;
    step(opcode);
  }
  Node* result = pop();
  if (!stack_.empty()) place_.bad(opcode_at_, "got more than one value at the end, expected one");
  at = at_;
  return result;
}

// Marks, copies and the memo.
bool Pickle::step_on_stack(uint8_t opcode) {
  switch (opcode) {
    case 0x95: {  // FRAME: how much is read at once, which is no concern of ours
      const uint64_t n = number(8);
      if (n > in_.size() - at_) {
        place_.bad(opcode_at_, "got a frame of ", n, " bytes, expected at most the ",
                   in_.size() - at_, " that are left");
      }
      break;
    }
    case '(': push_new(NodeMark()); break;
    case '0':  // POP
      if (!stack_.empty() && stack_.back()->as<NodeMark>()) stack_.pop_back();
      else pop();
      break;
    case '1': pop_mark(); break;
    case '2': push(top()); break;
    case 'q': remember(number(1)); break;
    case 'r': remember(number(4)); break;
    case 0x94: remember(memo_.size()); break;
    case 'h':
    case 'j': {
      const uint64_t index = number(opcode == 'h' ? 1 : 4);
      const auto found = memo_.find(index);
      if (found == memo_.end())
        place_.bad(opcode_at_, "got number ", index, " of the memo, which was not stored");
      push(found->second);
      break;
    }
    default: return false;
  }
  return true;
}

// Numbers, texts, bytes.
bool Pickle::step_value(uint8_t opcode) {
  switch (opcode) {
    case 'N': push_new(std::monostate()); break;
    case 0x88: push_new(true); break;
    case 0x89: push_new(false); break;
    case 'J': push_new(static_cast<int64_t>(static_cast<int32_t>(number(4)))); break;
    case 'K': push_new(static_cast<int64_t>(number(1))); break;
    case 'M': push_new(static_cast<int64_t>(number(2))); break;
    case 0x8a:    // LONG1
    case 0x8b: {  // LONG4
      std::string s = bytes(number(opcode == 0x8a ? 1 : 4), "an integer");
      if (s.size() > 8) {
        push_new(NodeLong{std::move(s)});
        break;
      }
      uint64_t n = 0;
      for (size_t i = 0; i < s.size(); ++i) n |= uint64_t{static_cast<uint8_t>(s[i])} << (8 * i);
      if (!s.empty() && s.size() < 8 && (s.back() & 0x80)) n |= ~uint64_t{0} << (8 * s.size());
      push_new(static_cast<int64_t>(n));
      break;
    }
    case 'G': {  // BINFLOAT, big-endian
      uint64_t n = 0;
      for (int i = 0; i < 8; ++i) n = n << 8 | byte();
      double x;
      std::memcpy(&x, &n, 8);
      push_new(x);
      break;
    }
    case 'X':
    case 0x8c:
    case 0x8d: {
      std::string s = bytes(number(opcode == 0x8c ? 1 : opcode == 'X' ? 4 : 8), "a text");
      if (!is_utf8(s)) place_.bad(opcode_at_, "got a text that is no valid UTF-8");
      push_new(std::move(s));
      break;
    }
    case 'U':  // texts of Python 2, bytes of Python 3
    case 'C': push_new(bytes(number(1), "bytes")); break;
    case 'T':
    case 'B': push_new(bytes(number(4), "bytes")); break;
    case 0x8e:
    case 0x96: push_new(bytes(number(8), "bytes")); break;
    default: return false;
  }
  return true;
}

// Lists, tuples, dictionaries, sets.
bool Pickle::step_container(uint8_t opcode) {
  switch (opcode) {
    case ']': push_new(NodeList()); break;
    case 'l': push_new(NodeList{pop_mark()}); break;
    case 'a': {
      Node* item = pop();
      append(top(), {item});
      break;
    }
    case 'e': {
      const std::vector<Node*> items = pop_mark();
      append(top(), items);
      break;
    }
    case ')': push_new(NodeTuple()); break;
    case 't': push_new(NodeTuple{pop_mark()}); break;
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<Node*> items(opcode - 0x84u);
      for (auto i = items.rbegin(); i != items.rend(); ++i) *i = pop();
      push_new(NodeTuple{std::move(items)});
      break;
    }
    case '}': push_new(NodeDict()); break;
    case 'd': {
      const std::vector<Node*> items = pop_mark();
      push_new(NodeDict());
      set_items(top(), items);
      break;
    }
    case 's': {
      Node *value = pop(), *key = pop();
      set_items(top(), {key, value});
      break;
    }
    case 'u': {
      const std::vector<Node*> items = pop_mark();
      set_items(top(), items);
      break;
    }
    case 0x8f: push(opaque("builtins.set")); break;  // EMPTY_SET
    case 0x90:                                       // ADDITEMS
      pop_mark();
      if (!top()->as<NodeOpaque>())
        place_.bad(opcode_at_, "got ", top()->kind(), ", expected a set to add to");
      break;
    case 0x91:  // FROZENSET
      pop_mark();
      push(opaque("builtins.frozenset"));
      break;
    default: return false;
  }
  return true;
}

// Globals, and what is made by calling them.
bool Pickle::step_call(uint8_t opcode) {
  switch (opcode) {
    case 'c': {  // GLOBAL
      const std::string module = line(), name = line();
      push_global(module, name);
      break;
    }
    case 0x93: {  // STACK_GLOBAL
      Node *name = pop(), *module = pop();
      if (!name->as<std::string>() || !module->as<std::string>())
        place_.bad(opcode_at_, "got ", module->kind(), " and ", name->kind(),
                   " as a global's name");
      push_global(*module->as<std::string>(), *name->as<std::string>());
      break;
    }
    case 'R': {  // REDUCE
      Node *arguments = pop(), *function = pop();
      push(call(function, arguments, "REDUCE"));
      break;
    }
    case 0x81: {  // NEWOBJ
      Node *arguments = pop(), *function = pop();
      push(call(function, arguments, "NEWOBJ"));
      break;
    }
    case 0x92: {  // NEWOBJ_EX
      Node* named = pop();
      Node *arguments = pop(), *function = pop();
      Node* made = call(function, arguments, "NEWOBJ_EX");
      const bool none = named->as<NodeDict>() && named->as<NodeDict>()->items.empty();
      if (!none && !made->as<NodeOpaque>())
        place_.bad(opcode_at_, "got arguments by name for ", function->kind(), ", expected none");
      push(made);
      break;
    }
    case 'b': {  // BUILD
      Node* state = pop();
      build(top(), state);
      break;
    }
    case 'Q': push(storage(pop())); break;  // BINPERSID
    default: return false;
  }
  return true;
}

void Pickle::step(uint8_t opcode) {
  if (step_value(opcode) || step_container(opcode) || step_on_stack(opcode) || step_call(opcode))
    return;
  char hex[8];
  std::snprintf(hex, sizeof hex, "0x%02x", opcode);
  place_.bad(opcode_at_, "got the opcode ", hex, " (", other_opcode(opcode),
             "), expected one that state dicts use");
}

}  // namespace ramet::formats::detail
