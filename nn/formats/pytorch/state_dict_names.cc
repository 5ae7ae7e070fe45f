// The rules of a NameMap, and what they make of a file's tensors.
#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "autograd/grad_mode.h"
#include "autograd/ops/shape/cat.h"
#include "nn/formats/pytorch/state_dict_internal.h"

namespace ramet::formats {

using detail::add_note;
using detail::NamedTensor;

NameMap::NameMap() = default;
NameMap::NameMap(const NameMap&) = default;
NameMap::NameMap(NameMap&&) noexcept = default;
NameMap& NameMap::operator=(const NameMap&) = default;
NameMap& NameMap::operator=(NameMap&&) noexcept = default;
NameMap::~NameMap() = default;

// ---- rules --------------------------------------------------------------------------------------

namespace {
std::regex regex_of(const std::string& pattern) {
  try {
    std::regex made;
    made.imbue(std::locale::classic());
    made.assign(pattern);
    return made;
  } catch (const std::regex_error& e) {
    fail("NameMap", "pattern: got \"", pattern, "\" (", e.what(),
         "), expected a regular expression");
  }
}
void check_parts(const char* what, size_t n) {
  RAMET_CHECK(n >= 2, "NameMap", what, ": got ", n, " names for the parts, expected 2 or more");
}
}  // namespace

NameMap& NameMap::rename(const std::string& from, const std::string& to) {
  rules_.push_back({Rule::kExact, from, {to}, {}, {}});
  return *this;
}
NameMap& NameMap::rename_prefix(const std::string& from, const std::string& to) {
  rules_.push_back({Rule::kPrefix, from, {to}, {}, {}});
  return *this;
}
NameMap& NameMap::rename_regex(const std::string& pattern, const std::string& to) {
  rules_.push_back({Rule::kRegex, "", {to}, {regex_of(pattern)}, {}});
  return *this;
}
NameMap& NameMap::transpose(const std::string& pattern) { return permute(pattern, {1, 0}); }
NameMap& NameMap::permute(const std::string& pattern, std::vector<int64_t> dims) {
  std::vector<int64_t> sorted = dims;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    RAMET_CHECK(sorted[i] == static_cast<int64_t>(i), "NameMap", "dimensions: got ",
                IntArrayRef(dims), ", expected each from 0 to ", dims.size() - 1, " once");
  }
  rules_.push_back({Rule::kPermute, "", {}, {regex_of(pattern)}, std::move(dims)});
  return *this;
}
NameMap& NameMap::ignore(const std::string& pattern) {
  rules_.push_back({Rule::kIgnore, "", {}, {regex_of(pattern)}, {}});
  return *this;
}
NameMap& NameMap::join(const std::vector<std::string>& patterns, const std::string& to,
                       int64_t dim) {
  check_parts("join", patterns.size());
  std::vector<std::regex> compiled;
  for (const std::string& pattern : patterns) compiled.push_back(regex_of(pattern));
  rules_.push_back({Rule::kJoin, "", {to}, std::move(compiled), {dim}});
  return *this;
}
NameMap& NameMap::split(const std::string& pattern, std::vector<std::string> to, int64_t dim) {
  check_parts("split", to.size());
  rules_.push_back({Rule::kSplit, "", std::move(to), {regex_of(pattern)}, {dim}});
  return *this;
}

// ---- applied ------------------------------------------------------------------------------------

namespace {

std::optional<int64_t> dim_of(const Tensor& t, int64_t dim) {
  if (dim < 0) dim += t.dim();
  if (dim < 0 || dim >= t.dim()) return std::nullopt;
  return dim;
}

void permute_entry(NamedTensor& entry, const std::vector<int64_t>& dims) {
  auto text = ramet::detail::classic<std::ostringstream>();
  text << IntArrayRef(dims);
  if (static_cast<size_t>(entry.tensor.dim()) != dims.size()) {
    add_note(entry.note, "not permuted " + text.str() + ": another rank");
    return;
  }
  entry.tensor = entry.tensor.permute(dims);
  add_note(entry.note, "permuted " + text.str());
}

// Why the parts, one for each pattern, do not make one tensor; "" where they do.
std::string unjoinable(const std::vector<std::vector<size_t>>& parts,
                       const std::vector<NamedTensor>& entries, int64_t dim) {
  const NamedTensor* first = nullptr;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].size() != 1) {
      return "got " + std::to_string(parts[i].size()) + " of part " + std::to_string(i + 1) +
             " of " + std::to_string(parts.size());
    }
    const NamedTensor& entry = entries[parts[i].front()];
    const Tensor& t = entry.tensor;
    if (!first) first = &entry;
    const auto along = dim_of(t, dim);
    if (!along) return "no dimension " + std::to_string(dim);
    std::vector<int64_t> sizes = t.sizes().vec(), expected = first->tensor.sizes().vec();
    if (sizes.size() == expected.size())
      sizes[static_cast<size_t>(*along)] = expected[static_cast<size_t>(*along)];
    if (sizes != expected || t.scalar_type() != first->tensor.scalar_type() ||
        t.device() != first->tensor.device())
      return "\"" + entry.name + "\" does not fit \"" + first->name + "\"";
  }
  return "";
}

// Entries of one result, by its name: those of each pattern.
void join_entries(std::vector<NamedTensor>& entries, const std::vector<std::regex>& patterns,
                  const std::string& to, int64_t dim) {
  std::map<std::string, std::vector<std::vector<size_t>>> results;
  for (size_t e = 0; e < entries.size(); ++e) {
    if (entries[e].ignored) continue;
    for (size_t i = 0; i < patterns.size(); ++i) {
      std::smatch match;
      if (!std::regex_match(entries[e].name, match, patterns[i])) continue;
      auto& parts = results[match.format(to)];
      parts.resize(patterns.size());
      parts[i].push_back(e);
      break;
    }
  }
  std::vector<bool> joined(entries.size());
  for (const auto& [name, parts] : results) {
    const std::string why = unjoinable(parts, entries, dim);
    if (!why.empty()) {
      for (const auto& part : parts)
        for (const size_t e : part) add_note(entries[e].note, "not joined: " + why);
      continue;
    }
    std::vector<Tensor> tensors;
    std::string from;
    for (const auto& part : parts) {
      NamedTensor& entry = entries[part.front()];
      tensors.push_back(entry.tensor);
      from += (from.empty() ? "" : ", ") + entry.from;
      joined[part.front()] = true;
    }
    // It takes the place of the first of them in the file.
    size_t at = parts.front().front();
    for (const auto& part : parts) at = std::min(at, part.front());
    NamedTensor& whole = entries[at];
    joined[at] = false;
    whole.name = name, whole.from = from;
    whole.tensor = cat(tensors, dim);
    add_note(whole.note, "joined along " + std::to_string(dim));
  }
  size_t kept = 0;
  for (size_t e = 0; e < entries.size(); ++e) {
    if (joined[e]) continue;
    if (kept != e) entries[kept] = std::move(entries[e]);
    ++kept;
  }
  entries.resize(kept);
}

void split_entries(std::vector<NamedTensor>& entries, const std::regex& pattern,
                   const std::vector<std::string>& to, int64_t dim) {
  std::vector<NamedTensor> all;
  const auto n = static_cast<int64_t>(to.size());
  for (NamedTensor& entry : entries) {
    std::smatch match;
    if (entry.ignored || !std::regex_match(entry.name, match, pattern)) {
      all.push_back(std::move(entry));
      continue;
    }
    const auto along = dim_of(entry.tensor, dim);
    if (!along || entry.tensor.size(*along) % n != 0) {
      add_note(entry.note, "not split along " + std::to_string(dim) + " into " + std::to_string(n) +
                               " equal parts");
      all.push_back(std::move(entry));
      continue;
    }
    const int64_t length = entry.tensor.size(*along) / n;
    for (int64_t i = 0; i < n; ++i) {
      NamedTensor part = entry;
      part.name = match.format(to[static_cast<size_t>(i)]);
      part.tensor = entry.tensor.narrow(*along, i * length, length);
      add_note(part.note, "part " + std::to_string(i + 1) + " of " + std::to_string(n) + " along " +
                              std::to_string(dim));
      all.push_back(std::move(part));
    }
  }
  entries = std::move(all);
}

}  // namespace

void NameMap::apply(std::vector<NamedTensor>& entries) const {
  NoGradGuard no_grad;
  for (const Rule& rule : rules_) {
    if (rule.what == Rule::kJoin) join_entries(entries, rule.patterns, rule.to[0], rule.dims[0]);
    if (rule.what == Rule::kSplit) split_entries(entries, rule.patterns[0], rule.to, rule.dims[0]);
    for (NamedTensor& entry : entries) {
      if (entry.ignored) continue;
      std::string& name = entry.name;
      switch (rule.what) {
        case Rule::kExact:
          if (name == rule.from) name = rule.to[0];
          break;
        case Rule::kPrefix:
          if (name.compare(0, rule.from.size(), rule.from) == 0)
            name = rule.to[0] + name.substr(rule.from.size());
          break;
        case Rule::kRegex: name = std::regex_replace(name, rule.patterns[0], rule.to[0]); break;
        case Rule::kPermute:
          if (std::regex_match(name, rule.patterns[0])) permute_entry(entry, rule.dims);
          break;
        case Rule::kIgnore: entry.ignored = std::regex_match(name, rule.patterns[0]); break;
        case Rule::kJoin:
        case Rule::kSplit: break;
      }
    }
  }
}

}  // namespace ramet::formats
