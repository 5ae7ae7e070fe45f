// How the rules of a NameMap turn the tensors of a file into a module's.
#pragma once
#include <regex>
#include <string>
#include <vector>

#include "nn/formats/pytorch/state_dict.h"

namespace ramet::formats {

struct NameMap::Rule {
  enum Kind { kExact, kPrefix, kRegex, kPermute, kIgnore, kJoin, kSplit };
  Kind what;
  std::string from;                  // kExact, kPrefix
  std::vector<std::string> to;       // kRegex: with $1; kJoin: one; kSplit: one for each part
  std::vector<std::regex> patterns;  // kJoin: one for each part; others: at most one
  std::vector<int64_t> dims;         // kPermute: all; kJoin, kSplit: one
};

namespace detail {

/// A tensor of a file, and what the rules so far have made of it.
struct NamedTensor {
  std::string name, from, note;
  Tensor tensor;
  size_t order;  // its place in the file
  bool ignored = false;
};

/// "float32[3, 4]"
std::string shape_text(const Tensor& t);
/// Appends to a note.
void add_note(std::string& note, const std::string& more);

}  // namespace detail
}  // namespace ramet::formats
