#include "nn/formats/pytorch/state_dict.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <sstream>

#include "autograd/grad_mode.h"
#include "nn/formats/numpy/npz.h"
#include "nn/formats/pytorch/pickle_internal.h"
#include "nn/formats/pytorch/pt.h"
#include "nn/formats/pytorch/state_dict_internal.h"
#include "nn/formats/zip/zip_internal.h"
#include "nn/serialize/safetensors.h"
#include "nn/serialize/source_internal.h"
#include "runtime/base/logging.h"

namespace ramet::formats {

using detail::add_note;
using detail::NamedTensor;
using detail::shape_text;

// ---- names of a file's tensors ------------------------------------------------------------------

namespace {

// std::regex recurses for each character, and each tensor of a tree has the keys above it in its
// name.
constexpr size_t kMaxName = 4096, kMostNames = size_t{1} << 28;

struct Content {
  OrderedDict<std::string, Tensor> tensors{"Tensor"};
  std::vector<std::pair<std::string, std::string>> unread;  // name, what it is
};

class Flat {
 public:
  Content content;
  void add(const std::string& name, const IValue& value) {
    RAMET_CHECK(name.size() <= kMaxName, "state_dict", "name of a tensor: got one of ", name.size(),
                " bytes or more, expected at most ", kMaxName);
    const std::string inner = name.empty() ? "" : name + ".", full = name.empty() ? "0" : name;
    if (value.isTensor()) {
      RAMET_CHECK(!content.tensors.contains(full), "state_dict", "name of a tensor: got \"", full,
                  "\" twice, expected once");
      count(full);
      content.tensors.insert(full, value.toTensor());
    } else if (value.isOpaque()) {
      count(full + value.toOpaque().name);
      content.unread.emplace_back(full, value.toOpaque().name);
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
  void count(const std::string& name) {
    names_ += name.size();
    RAMET_CHECK(names_ <= kMostNames, "state_dict", "names of tensors: got more than ", kMostNames,
                " bytes");
  }
  void add_all(const std::string& inner, const std::vector<IValue>& items) {
    for (size_t i = 0; i < items.size(); ++i) add(inner + std::to_string(i), items[i]);
  }
};

Content flattened(const IValue& tree) {
  Flat flat;
  flat.add("", tree);
  return std::move(flat.content);
}

// Is `below` the name, or one above it?
bool is_below(const std::string& name, const std::string& below) {
  return below.empty() || (name + ".").compare(0, below.size() + 1, below + ".") == 0;
}

// Names what could not be read below or around `below`; "" where there is nothing.
std::string unread_text(const Content& content, const std::string& below) {
  constexpr size_t kMost = 20;
  std::string text;
  size_t n = 0;
  for (const auto& [name, what] : content.unread) {
    if (!is_below(name, below) && !is_below(below, name)) continue;
    if (++n <= kMost) text += (n > 1 ? ", \"" : "\"") + name + "\" (" + what + ")";
  }
  return n > kMost ? text + " and " + std::to_string(n - kMost) + " more" : text;
}

OrderedDict<std::string, Tensor> only_below(Content content, const std::string& below) {
  OrderedDict<std::string, Tensor> some("Tensor");
  std::vector<std::string> first;
  for (auto& item : content.tensors) {
    const std::string& name = item.key();
    if (below.empty()) some.insert(name, item.value());
    else if (name != below && is_below(name, below))
      some.insert(name.substr(below.size() + 1), item.value());
    const std::string part = name.substr(0, name.find('.'));
    if (first.size() < 20 && std::find(first.begin(), first.end(), part) == first.end())
      first.push_back(part);
  }
  if (!some.is_empty()) return some;
  const std::string unread = unread_text(content, below);
  if (!unread.empty()) fail("state_dict", "got no tensors but ", unread, detail::kSaveAlone);
  if (below.empty()) return some;
  std::string names;
  for (const std::string& part : first) names += (names.empty() ? "" : ", ") + part;
  fail("state_dict", "got no tensors below \"", below, "\", expected some below one of: ", names);
}

Content named(serialize::Safetensors file) {
  Content content;
  for (auto& [name, tensor] : file.tensors) content.tensors.insert(name, std::move(tensor));
  return content;
}

Content read(const std::string& path, std::optional<Device> device) {
  serialize::detail::FileSource in("state_dict", path, "a file of tensors");
  char head[9] = {};
  in.read(0, head, std::min<uint64_t>(in.size(), 9));
  const std::string first(head, 4);
  // Where the tensors stay in main memory, the file's pages are their memory.
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
      return {load_npz(path, device), {}};
    return flattened(load_pt(path, device));
  }
  if (head[0] == '\x80') return flattened(load_pt(path, device));
  if (head[0] == '{') {
    return named(stays ? serialize::map_safetensors_index(path, /*verify=*/true)
                       : serialize::load_safetensors_index(path, device));
  }
  return named(serialize::load_safetensors(path, device));
}

}  // namespace

OrderedDict<std::string, Tensor> tensors_of(const IValue& tree, const std::string& below) {
  return only_below(flattened(tree), below);
}

std::vector<std::pair<std::string, std::string>> unread_of(const IValue& tree) {
  return flattened(tree).unread;
}

OrderedDict<std::string, Tensor> state_dict(const std::string& path, const std::string& below,
                                            std::optional<Device> device) {
  Content content = read(path, device);
  const std::string unread = unread_text(content, below);
  OrderedDict<std::string, Tensor> tensors = only_below(std::move(content), below);
  if (!unread.empty()) {
    RAMET_WARN("[state_dict] \"", path, "\": left out ", unread,
               ", which this library cannot hold");
  }
  return tensors;
}

OrderedDict<std::string, Tensor> state_dict(const nn::Module& module) {
  OrderedDict<std::string, Tensor> all("Tensor");
  for (const auto& item : module.named_parameters())
    if (item.value().defined()) all.insert(item.key(), item.value().detach());
  for (const auto& item : module.named_buffers())
    if (item.value().defined()) all.insert(item.key(), item.value().detach());
  return all;
}

// ---- loading ------------------------------------------------------------------------------------

std::string detail::shape_text(const Tensor& t) {
  auto text = ramet::detail::classic<std::ostringstream>();
  text << short_name_of(t.scalar_type()) << t.sizes();
  return text.str();
}
void detail::add_note(std::string& note, const std::string& more) {
  note += (note.empty() ? "" : ", ") + more;
}

class StateLoader {
 public:
  using Kind = LoadReport::Kind;

  StateLoader(nn::Module& module, const OrderedDict<std::string, Tensor>& tensors,
              const NameMap& names) {
    std::vector<NamedTensor> entries;
    for (const auto& item : tensors) {
      RAMET_CHECK(item.value().defined(), "load_state_dict", "tensor \"", item.key(),
                  "\": got an undefined one, expected values");
      RAMET_CHECK(item.key().size() <= kMaxName, "load_state_dict", "name of a tensor: got one of ",
                  item.key().size(), " bytes, expected at most ", kMaxName);
      entries.push_back({item.key(), item.key(), "", item.value().detach(), entries.size()});
    }
    names.apply(entries);
    for (NamedTensor& entry : entries) {
      if (entry.ignored) add_other(Kind::kIgnored, entry, "");
      else given_[entry.name].push_back(std::move(entry));
    }
    const auto match_all = [&](const OrderedDict<std::string, Tensor>& members) {
      for (const auto& item : members)
        if (item.value().defined()) match(item.key(), item.value());
    };
    match_all(module.named_parameters());
    match_all(module.named_buffers());
    for (const auto& [name, given] : given_)
      if (!used_.count(name))
        for (const NamedTensor& entry : given) add_other(Kind::kUnexpected, entry, entry.note);
    for (auto& other : others_) report.rows.push_back(std::move(other.second));
  }

  void load() {
    NoGradGuard no_grad;
    for (const auto& [to, from] : moves_) to.copy_(from);
    report.loaded = moves_.size();
  }

  LoadReport report;

 private:
  void add_other(Kind kind, const NamedTensor& entry, const std::string& note) {
    others_.emplace(entry.order, LoadReport::Row{kind, entry.name, entry.from,
                                                 shape_text(entry.tensor), "", note});
  }
  void match(const std::string& name, const Tensor& member) {
    used_.insert({name, true});
    const auto found = given_.find(name);
    if (found == given_.end()) {
      report.rows.push_back({Kind::kMissing, name, "", "", shape_text(member), ""});
      return;
    }
    const bool twice = found->second.size() > 1;
    for (const NamedTensor& g : found->second) {
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

  std::map<std::string, std::vector<NamedTensor>> given_;  // by the module's names
  std::map<std::string, bool> used_;
  std::multimap<size_t, LoadReport::Row> others_;  // of the file alone, in its order
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
