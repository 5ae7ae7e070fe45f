#include "parallel/distributed/model/model_table_internal.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "parallel/distributed/group/agree_internal.h"
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ramet::distributed::detail {
namespace {

constexpr const char* kOption = "option";

struct Row {
  std::string kind, name, what;  // what: all but the name
  std::string text() const { return kind + " '" + name + "' " + what; }
};

std::vector<Row> table_of(const nn::Module& module, const Exceptions& exceptions) {
  std::vector<Row> rows;
  std::map<const TensorImpl*, std::string> seen;
  const auto add = [&](const char* kind, const std::string& name, const Tensor& t,
                       nn::BufferPolicy policy) {
    if (exceptions.tensor(t)) return;
    auto what = ramet::detail::classic<std::ostringstream>();
    static const char* const names[] = {"first", "merge_stats", "mean", "sum",
                                        "max",   "all_equal",   "sync", "per_replica"};
    if (policy != nn::BufferPolicy::first)
      what << "policy " << names[static_cast<size_t>(policy)] << ' ';
    if (!t.defined()) {
      what << "undefined";
    } else {
      what << short_name_of(t.scalar_type()) << t.sizes() << " strides " << t.strides();
      if (t.requires_grad()) what << " requires grad";
      const auto [at, first] = seen.emplace(t.impl(), name);
      if (!first) what << " tied to '" << at->second << "'";
    }
    rows.push_back({kind, name, what.str()});
  };
  module.apply(
      nn::Module::ConstNamedModuleApplyFunction([&](const std::string& path, const nn::Module& m) {
        const std::string prefix = path.empty() ? "" : path + ".";
        for (const auto& item : m.own_parameters())
          add("parameter", prefix + item.key(), item.value(), nn::BufferPolicy::first);
        for (const auto& item : m.own_buffers())
          add("buffer", prefix + item.key(), item.value(), m.buffer_policy(item.key()));
      }));
  return rows;
}

std::string packed(const std::vector<Row>& rows) {
  std::string out;
  for (const Row& r : rows) out += r.kind + '\t' + r.name + '\t' + r.what + '\n';
  return out;
}

std::vector<Row> unpacked(const std::string& text) {
  std::vector<Row> rows;
  auto in = ramet::detail::classic<std::istringstream>(text);
  for (std::string line; std::getline(in, line);) {
    const size_t a = line.find('\t'), b = line.find('\t', a + 1);
    if (a == std::string::npos || b == std::string::npos) continue;
    rows.push_back({line.substr(0, a), line.substr(a + 1, b - a - 1), line.substr(b + 1)});
  }
  return rows;
}

std::string difference(const std::vector<Row>& first, const std::vector<Row>& theirs, int rank) {
  const std::string who = "rank " + std::to_string(rank);
  const auto options = static_cast<size_t>(std::ranges::count(first, kOption, &Row::kind));
  for (size_t i = 0; i < std::max(first.size(), theirs.size()); ++i) {
    if (i >= theirs.size()) return who + " lacks " + first[i].text() + " of rank 0";
    if (i >= first.size()) return who + " has " + theirs[i].text() + ", which rank 0 has not";
    if (first[i].text() == theirs[i].text()) continue;
    if (first[i].kind == theirs[i].kind && first[i].name == theirs[i].name)
      return first[i].kind + " '" + first[i].name + "' of " + who + ", " + theirs[i].what +
             ", appears not to match that of rank 0, " + first[i].what;
    return "entry " + std::to_string(i - options) + " of " + who + ", " + theirs[i].text() +
           ", appears not to match that of rank 0, " + first[i].text();
  }
  return {};
}

// An option's name is the row's name; options come before the model.
std::string packed(const SharedOptions& options) {
  std::vector<Row> rows;
  for (const auto& [name, value] : options) rows.push_back({kOption, name, value});
  return packed(rows);
}

SharedOptions options_in(const std::vector<Row>& rows) {
  SharedOptions out;
  for (const Row& r : rows)
    if (r.kind == kOption) out.emplace_back(r.name, r.what);
  return out;
}

}  // namespace

std::string text_of(Average average) {
  static const char* const names[] = {"mean", "sum", "weighted"};
  return names[static_cast<size_t>(average)];
}

std::string text_of(ReduceOrder order) {
  if (order.is_tree()) return "tree(" + std::to_string(order.leaves()) + ")";
  return order.kind() == ReduceOrder::Kind::kAny ? "any" : "fixed";
}

std::string difference(const SharedOptions& first, const SharedOptions& theirs) {
  std::string text;
  for (size_t i = 0; i < std::min(first.size(), theirs.size()); ++i) {
    const auto& [name, value] = first[i];
    if (theirs[i].second == value) continue;
    text += (text.empty() ? "" : ", ") + name + ": got " + theirs[i].second + ", expected " +
            value + " as on rank 0";
  }
  return text;
}

void verify_model(ProcessGroup& group, const char* op, const nn::Module& module,
                  const std::function<Exceptions()>& checked, const SharedOptions& options,
                  const std::string& name) {
  std::string mine;
  const auto digests = agree(group, op, name + "/model", {}, [&] {
    mine = packed(options) + packed(table_of(module, checked()));
    const uint64_t hash = XXH3_64bits(mine.data(), mine.size());
    return std::string(reinterpret_cast<const char*>(&hash), sizeof(hash));
  });
  if (std::ranges::count(digests, digests[0]) == group.size()) return;
  const std::vector<std::string> tables = group.exchange(mine, name + "/model table");
  const std::vector<Row> first = unpacked(tables[0]);
  std::string text, rules;
  for (size_t r = 1; r < tables.size(); ++r) {
    const std::vector<Row> theirs = unpacked(tables[r]);
    if (const std::string d = difference(options_in(first), options_in(theirs)); !d.empty())
      rules += (rules.empty() ? "rank " : "; rank ") + std::to_string(r) + " has " + d;
    const std::string d = difference(first, theirs, static_cast<int>(r));
    if (!d.empty()) text += (text.empty() ? "" : "; ") + d;
  }
  RAMET_CHECK(rules.empty(), "ddp", "the ranks have different options: ", rules);
  fail("ddp", "the ranks have different models: ", text);
}

void copy_model(ProcessGroup& group, const nn::Module& module, const Exceptions& exceptions,
                int root, const std::string& name,
                const std::function<bool(const Tensor&)>& chosen) {
  std::vector<Work> works;
  const auto send = [&](const std::string& what, const Tensor& t) {
    if (t.defined() && t.numel() > 0 && !exceptions.tensor(t) && (!chosen || chosen(t)))
      works.push_back(group.broadcast(t.detach(), root, name + "/initial " + what));
  };
  for (const auto& item : module.named_parameters()) send(item.key(), item.value());
  for (const auto& item : module.named_buffers()) send(item.key(), item.value());
  for (const Work& w : works) w.wait();
}

}  // namespace ramet::distributed::detail
