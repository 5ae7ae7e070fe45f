// The tables that name the Python line of each part of an archive's code.
//
// Such a table is a pickle. Since PyTorch 1.10 it is ("FORMAT_WITH_STRING_TABLE", strings, ranges).
// A range is (offset, ((pieces, file, first line), start, end), tag). `pieces` names the strings
// that the Python text is made of; `file` is the number of a string, too. Before 1.10 the pickle is
// the ranges alone, with the text and the file themselves. The range's line is `first line` plus
// the line ends before `start`.
#include <algorithm>
#include <map>

#include "nn/formats/pytorch/pickle_internal.h"
#include "nn/script/ast_internal.h"
#include "runtime/base/error.h"

namespace ramet::script {
namespace {

using formats::detail::Node;
using formats::detail::NodeList;
using formats::detail::NodeTuple;
using formats::detail::Pickle;
using Nodes = std::vector<Node*>;

constexpr const char* kFormat = "FORMAT_WITH_STRING_TABLE";

// A table may repeat its strings: so many bytes of them, and so many for each of its own.
constexpr int64_t kMostOfAny = int64_t{1} << 24, kMostOfAByte = 32;

// Where each line of a text ends.
using LineEnds = std::vector<int64_t>;

class Table {
 public:
  Table(const Pickle& pickle, size_t bytes)
      : pickle_(pickle), left_(kMostOfAny + kMostOfAByte * static_cast<int64_t>(bytes)) {}

  std::vector<Source::Origin> read(Node* top) {
    const Nodes* parts = &items(top, "a table of lines");
    if (parts->size() == 3 && (*parts)[0]->as<std::string>()) {
      if (*(*parts)[0]->as<std::string>() != kFormat)
        bad((*parts)[0], "the text \"" + std::string(kFormat) + "\"");
      for (Node* s : items((*parts)[1], "strings")) strings_.push_back(&text(s));
      has_strings_ = true;
      parts = &items((*parts)[2], "ranges");
    }
    std::vector<Source::Origin> origins;
    origins.reserve(parts->size());
    for (Node* range : *parts) origins.push_back(origin(range));
    std::stable_sort(origins.begin(), origins.end(),
                     [](const auto& a, const auto& b) { return a.offset < b.offset; });
    // Neighbours of one line are one.
    origins.erase(std::unique(origins.begin(), origins.end(),
                              [](const auto& a, const auto& b) {
                                return a.line == b.line && a.file == b.file;
                              }),
                  origins.end());
    return origins;
  }

 private:
  [[noreturn]] void bad(Node* got, const std::string& expected) const {
    pickle_.place().bad(got->at, "got ", got->kind(), ", expected ", expected);
  }
  const Nodes& items(Node* node, const char* what, size_t least = 0) const {
    const Nodes* found = nullptr;
    if (const auto* t = node->as<NodeTuple>()) found = &t->items;
    if (const auto* l = node->as<NodeList>()) found = &l->items;
    if (!found || found->size() < least) bad(node, what);
    return *found;
  }
  int64_t number(Node* node) const {
    const int64_t* n = node->as<int64_t>();
    if (!n || *n < 0) bad(node, "a number from 0");
    return *n;
  }
  const std::string& text(Node* node) const {
    const std::string* s = node->as<std::string>();
    if (!s) bad(node, "a text");
    return *s;
  }
  const std::string& string_at(Node* node) const {
    const auto at = static_cast<uint64_t>(number(node));
    if (at >= strings_.size()) bad(node, "the number of a string of the table");
    return *strings_[at];
  }

  void use(const std::string& string, Node* at) {
    left_ -= static_cast<int64_t>(string.size()) + 1;
    if (left_ < 0) pickle_.place().bad(at->at, "got strings that are repeated too often");
  }

  Source::Origin origin(Node* range) {
    const Nodes& parts = items(range, "an offset and a range of Python's text", 2);
    const Nodes& where = items(parts[1], "a text of Python, and where it starts and ends", 3);
    const Nodes& from = items(where[0], "a text of Python, its file and its first line", 3);
    Source::Origin made{static_cast<size_t>(number(parts[0])), "", 0};
    if (has_strings_) made.file = string_at(from[1]);
    else if (!from[1]->as<std::monostate>()) made.file = text(from[1]);
    use(made.file, from[1]);
    const LineEnds& ends = line_ends(from[0]);
    const int64_t lines =
        std::lower_bound(ends.begin(), ends.end(), number(where[1])) - ends.begin();
    if (__builtin_add_overflow(number(from[2]), lines, &made.line)) bad(from[2], "a line's number");
    return made;
  }

  // Ranges share their texts, so each is read once.
  const LineEnds& line_ends(Node* text_or_pieces) {
    const auto [at, is_new] = line_ends_.emplace(text_or_pieces, LineEnds());
    LineEnds& ends = at->second;
    if (!is_new) return ends;
    int64_t size = 0;
    const auto add = [&](const std::string& piece) {
      use(piece, text_or_pieces);
      for (size_t i = piece.find('\n'); i != std::string::npos; i = piece.find('\n', i + 1))
        ends.push_back(size + static_cast<int64_t>(i));
      size += static_cast<int64_t>(piece.size());
    };
    if (!has_strings_) add(text(text_or_pieces));
    else
      for (Node* piece : items(text_or_pieces, "numbers of strings")) add(string_at(piece));
    return ends;
  }

  const Pickle& pickle_;
  int64_t left_;
  bool has_strings_ = false;
  std::vector<const std::string*> strings_;
  std::map<const Node*, LineEnds> line_ends_;
};

}  // namespace

std::vector<Source::Origin> read_origins(const std::string& name, const std::string& bytes) {
  serialize::detail::MemorySource source(bytes.data(), bytes.size());
  Pickle pickle({"torch::jit::load", name}, source, Pickle::Dialect::kLibTorch);
  uint64_t at = 0;
  Node* const top = pickle.run(at);
  return Table(pickle, bytes.size()).read(top);
}

}  // namespace ramet::script
