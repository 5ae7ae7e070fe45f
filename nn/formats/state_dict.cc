#include "nn/formats/state_dict.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <regex>
#include <sstream>

#include "autograd/grad_mode.h"
#include "nn/formats/npz.h"
#include "nn/formats/pickle_internal.h"
#include "nn/formats/pt.h"
#include "nn/formats/zip_internal.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/source_internal.h"

namespace ramet::formats {

// ---- names of a file's tensors ------------------------------------------------------------------

namespace {

// std::regex calls itself for each character, and each tensor of a tree has the keys above it.
constexpr size_t kMaxName = 4096, kMostNames = size_t{1} << 28;

class Flat {
 public:
  OrderedDict<std::string, Tensor> found{"Tensor"};
  void add(const std::string& name, const IValue& value) {
    RAMET_CHECK(name.size() <= kMaxName, "state_dict", "name of a tensor: got one of ", name.size(),
                " bytes or more, expected at most ", kMaxName);
    const std::string inner = name.empty() ? "" : name + ".";
    if (value.isTensor()) {
      const std::string full = name.empty() ? "0" : name;
      RAMET_CHECK(!found.contains(full), "state_dict", "name of a tensor: got \"", full,
                  "\" twice, expected once");
      names_ += full.size();
      RAMET_CHECK(names_ <= kMostNames, "state_dict", "names of tensors: got more than ",
                  kMostNames, " bytes");
      found.insert(full, value.toTensor());
    } else if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict())
        add(inner + detail::key_text(entry.key()), entry.value());
    } else if (value.isTuple()) {
      add_all(inner, value.toTupleRef().elements());
    } else if (value.isList()) {
      add_all(inner, value.toList().vec());
    }
  }

 private:
  size_t names_ = 0;
  void add_all(const std::string& inner, const std::vector<IValue>& items) {
    for (size_t i = 0; i < items.size(); ++i) add(inner + std::to_string(i), items[i]);
  }
};

OrderedDict<std::string, Tensor> only_below(OrderedDict<std::string, Tensor> all,
                                            const std::string& below) {
  if (below.empty()) return all;
  const std::string prefix = below + ".";
  OrderedDict<std::string, Tensor> some("Tensor");
  std::vector<std::string> first;
  for (auto& item : all) {
    if (item.key().compare(0, prefix.size(), prefix) == 0) {
      some.insert(item.key().substr(prefix.size()), item.value());
    }
    const std::string part = item.key().substr(0, item.key().find('.'));
    if (first.size() < 20 && std::find(first.begin(), first.end(), part) == first.end())
      first.push_back(part);
  }
  if (!some.is_empty()) return some;
  std::string names;
  for (const std::string& part : first) names += (names.empty() ? "" : ", ") + part;
  fail("state_dict", "got no tensors below \"", below, "\", expected some below one of: ", names);
}

OrderedDict<std::string, Tensor> named(serialize::Safetensors content) {
  OrderedDict<std::string, Tensor> all("Tensor");
  for (auto& [name, tensor] : content.tensors) all.insert(name, std::move(tensor));
  return all;
}

OrderedDict<std::string, Tensor> read(const std::string& path, std::optional<Device> device) {
  serialize::detail::FileSource in("state_dict", path, "a file of tensors");
  char head[9] = {};
  in.read(0, head, std::min<uint64_t>(in.size(), 9));
  const std::string first(head, 4);
  // Where the tensors stay in main memory, the file's pages are it.
  const bool stays = !device || resolve(*device) == Device(kCPU, 0);
  if (head[8] == '{') {
    return named(stays ? serialize::map_safetensors(path, /*verify=*/true)
                       : serialize::load_safetensors(path, device));
  }
  if (first == "PK\x03\x04") {
    const detail::ZipReader zip("state_dict", path);
    const auto is_array = [](const detail::ZipReader::Entry& e) {
      return e.name.size() > 4 && e.name.ends_with(".npy");
    };
    if (std::any_of(zip.entries().begin(), zip.entries().end(), is_array))
      return load_npz(path, device);
    return tensors_of(load_pt(path, device));
  }
  if (head[0] == '\x80') return tensors_of(load_pt(path, device));
  if (head[0] == '{') {
    return named(stays ? serialize::map_safetensors_index(path, /*verify=*/true)
                       : serialize::load_safetensors_index(path, device));
  }
  return named(serialize::load_safetensors(path, device));
}

}  // namespace

OrderedDict<std::string, Tensor> tensors_of(const IValue& tree, const std::string& below) {
  Flat flat;
  flat.add("", tree);
  return only_below(std::move(flat.found), below);
}

OrderedDict<std::string, Tensor> state_dict(const std::string& path, const std::string& below,
                                            std::optional<Device> device) {
  return only_below(read(path, device), below);
}

OrderedDict<std::string, Tensor> state_dict(const nn::Module& module) {
  OrderedDict<std::string, Tensor> all("Tensor");
  for (const auto& item : module.named_parameters())
    if (item.value().defined()) all.insert(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers())
    if (item.value().defined()) all.insert(item.key(), item.value().detach());
  return all;
}

// ---- rules --------------------------------------------------------------------------------------

struct NameMap::Rule {
  enum { kExact, kPrefix, kRegex, kPermute, kIgnore } what;
  std::string from, to;
  std::regex pattern;
  std::vector<int64_t> dims;
};

NameMap::NameMap() = default;
NameMap::NameMap(const NameMap&) = default;
NameMap::NameMap(NameMap&&) noexcept = default;
NameMap& NameMap::operator=(const NameMap&) = default;
NameMap& NameMap::operator=(NameMap&&) noexcept = default;
NameMap::~NameMap() = default;

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
}  // namespace

NameMap& NameMap::rename(const std::string& from, const std::string& to) {
  rules_.push_back({Rule::kExact, from, to, {}, {}});
  return *this;
}
NameMap& NameMap::rename_prefix(const std::string& from, const std::string& to) {
  rules_.push_back({Rule::kPrefix, from, to, {}, {}});
  return *this;
}
NameMap& NameMap::rename_regex(const std::string& pattern, const std::string& to) {
  rules_.push_back({Rule::kRegex, pattern, to, regex_of(pattern), {}});
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
  rules_.push_back({Rule::kPermute, pattern, "", regex_of(pattern), std::move(dims)});
  return *this;
}
NameMap& NameMap::ignore(const std::string& pattern) {
  rules_.push_back({Rule::kIgnore, pattern, "", regex_of(pattern), {}});
  return *this;
}

// ---- loading ------------------------------------------------------------------------------------

namespace {
std::string shape_text(const Tensor& t) {
  auto text = ramet::detail::classic<std::ostringstream>();
  text << short_name_of(t.scalar_type()) << t.sizes();
  return text.str();
}
void add_note(std::string& note, const std::string& more) {
  note += (note.empty() ? "" : ", ") + more;
}
}  // namespace

class StateLoader {
 public:
  using Kind = LoadReport::Kind;

  StateLoader(nn::Module& module, const OrderedDict<std::string, Tensor>& tensors,
              const NameMap& names) {
    for (const auto& item : tensors) {
      RAMET_CHECK(item.value().defined(), "load_state_dict", "tensor \"", item.key(),
                  "\": got an undefined one, expected values");
      map(item.key(), item.value(), names);
    }
    const auto match_all = [&](const OrderedDict<std::string, Tensor>& members) {
      for (const auto& item : members)
        if (item.value().defined()) match(item.key(), item.value());
    };
    match_all(module.named_parameters());
    match_all(module.named_buffers());
    for (const auto& [name, entries] : given_)
      for (const Given& g : entries)
        if (!used_.count(name))
          others_[g.order] = {Kind::kUnexpected, name, g.from, shape_text(g.tensor), "", g.note};
    for (auto& other : others_) report.rows.push_back(std::move(other.second));
  }

  void load() {
    NoGradGuard no_grad;
    for (const auto& [to, from] : moves_) to.copy_(from);
    report.loaded = moves_.size();
  }

  LoadReport report;

 private:
  struct Given {
    std::string from, note;
    Tensor tensor;
    size_t order;
  };

  void map(const std::string& from, Tensor tensor, const NameMap& names) {
    NoGradGuard no_grad;
    RAMET_CHECK(from.size() <= kMaxName, "load_state_dict", "name of a tensor: got one of ",
                from.size(), " bytes, expected at most ", kMaxName);
    std::string name = from, note;
    const size_t order = order_++;
    for (const NameMap::Rule& rule : names.rules_) {
      switch (rule.what) {
        case NameMap::Rule::kExact:
          if (name == rule.from) name = rule.to;
          break;
        case NameMap::Rule::kPrefix:
          if (name.compare(0, rule.from.size(), rule.from) == 0)
            name = rule.to + name.substr(rule.from.size());
          break;
        case NameMap::Rule::kRegex: name = std::regex_replace(name, rule.pattern, rule.to); break;
        case NameMap::Rule::kPermute: {
          if (!std::regex_match(name, rule.pattern)) break;
          auto text = ramet::detail::classic<std::ostringstream>();
          text << IntArrayRef(rule.dims);
          if (static_cast<size_t>(tensor.dim()) != rule.dims.size()) {
            add_note(note, "not permuted " + text.str() + ": another rank");
            break;
          }
          tensor = tensor.permute(rule.dims);
          add_note(note, "permuted " + text.str());
          break;
        }
        case NameMap::Rule::kIgnore:
          if (!std::regex_match(name, rule.pattern)) break;
          others_[order] = {Kind::kIgnored, name, from, shape_text(tensor), "", ""};
          return;
      }
    }
    given_[name].push_back({from, note, tensor.detach(), order});
  }

  void match(const std::string& name, const Tensor& member) {
    used_.insert({name, true});
    const auto found = given_.find(name);
    if (found == given_.end()) {
      report.rows.push_back({Kind::kMissing, name, "", "", shape_text(member), ""});
      return;
    }
    const bool twice = found->second.size() > 1;
    for (Given& g : found->second) {
      LoadReport::Row row{Kind::kLoaded,      name,  g.from, shape_text(g.tensor),
                          shape_text(member), g.note};
      if (twice) row.kind = Kind::kTwice;
      else if (g.tensor.sizes() != member.sizes()) row.kind = Kind::kMisshaped;
      else if (g.tensor.scalar_type() != member.scalar_type()) add_note(row.note, "converted");
      report.rows.push_back(std::move(row));
    }
    if (report.rows.back().kind == Kind::kLoaded)
      moves_.emplace_back(member, found->second.front().tensor);
  }

  size_t order_ = 0;
  std::map<std::string, std::vector<Given>> given_;  // by the module's names
  std::map<std::string, bool> used_;
  std::map<size_t, LoadReport::Row> others_;  // of the file alone, in its order
  std::vector<std::pair<Tensor, Tensor>> moves_;
};

std::vector<std::string> LoadReport::names(Kind kind) const {
  std::vector<std::string> list;
  for (const Row& row : rows)
    if (row.kind == kind) list.push_back(row.name);
  return list;
}

bool LoadReport::ok() const {
  return std::all_of(rows.begin(), rows.end(), [](const Row& row) {
    return row.kind == Kind::kLoaded || row.kind == Kind::kIgnored;
  });
}

std::string LoadReport::table() const {
  static const char* const kinds[] = {"loaded",     "ignored",   "missing",
                                      "unexpected", "misshaped", "twice"};
  std::vector<std::vector<std::string>> lines = {
      {"what", "name", "in the file", "got", "expected", "note"}};
  for (const Row& row : rows) {
    if (row.kind == Kind::kLoaded && row.name == row.from && row.note.empty()) continue;
    lines.push_back({kinds[static_cast<int>(row.kind)], row.name,
                     row.from == row.name ? "" : row.from, row.got, row.expected, row.note});
  }
  auto text = ramet::detail::classic<std::ostringstream>();
  text << loaded << " tensors loaded";
  if (lines.size() == 1) return text.str() + "\n";
  text << ":\n";
  std::vector<size_t> widths(lines[0].size());
  for (const auto& line : lines)
    for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  for (const auto& line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i)
      row += (i ? "  " : "") + line[i] + std::string(widths[i] - line[i].size(), ' ');
    row.resize(row.find_last_not_of(' ') + 1);
    text << row << '\n';
  }
  return text.str();
}

std::ostream& operator<<(std::ostream& out, const LoadReport& report) {
  return out << report.table();
}

LoadReport load_state_dict(nn::Module& module, const OrderedDict<std::string, Tensor>& tensors,
                           const NameMap& names, bool strict) {
  StateLoader loader(module, tensors, names);
  const auto count = [&](LoadReport::Kind kind) { return loader.report.names(kind).size(); };
  const size_t missing = count(LoadReport::Kind::kMissing),
               unexpected = count(LoadReport::Kind::kUnexpected),
               misshaped = count(LoadReport::Kind::kMisshaped),
               twice = count(LoadReport::Kind::kTwice);
  if (misshaped + twice > 0 || (strict && missing + unexpected > 0)) {
    fail("load_state_dict", "got ", missing, " missing, ", unexpected, " unexpected, ", misshaped,
         " mis-shaped and ", twice, " doubled tensors, expected ",
         strict ? "none" : "none of the last two", "; nothing was changed, ",
         loader.report.table());
  }
  loader.load();
  return std::move(loader.report);
}

}  // namespace ramet::formats
