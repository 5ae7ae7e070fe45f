#include "tools/see/explorer/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <tuple>

namespace ramet {
namespace see {

namespace {

constexpr int kStack = 8;          // the number of leaves below each other next to one operation
constexpr size_t kDotNodes = 300;  // dot takes seconds for much more

using Ids = std::vector<Id>;

// NodeRow::moves is also true for nodes that only lead to other devices.
bool is_movement(const NodeRow& node) {
  if (!node.moves) return false;
  for (const char* name : {"Scatter", "Gather", "Broadcast", "ReduceAdd"})
    if (node.name.compare(0, std::char_traits<char>::length(name), name) == 0) return true;
  return false;
}

// Is this movement what the node itself does: "gather" of GatherBackward?
bool is_own(const MovementRow& m, const RecordingData& data) {
  if (m.bucket >= 0) return true;
  if (m.node < 0 || !is_movement(data.nodes[m.node])) return false;
  std::string kind;
  for (const char c : m.kind)
    if (c != '_') kind += c;
  std::string name = data.nodes[m.node].name.substr(0, kind.size());
  for (char& c : name) c = ramet::detail::lower(c);
  return name == kind;
}

// The lanes of tensors, each once.
Ids lanes_of(const Ids& tensors, const RecordingData& data) {
  Ids out;
  for (const Id t : tensors) {
    const Id device = t < 0 ? -1 : data.tensors[t].device;
    if (device >= 0 && std::find(out.begin(), out.end(), device) == out.end())
      out.push_back(device);
  }
  return out;
}

class Maker {
 public:
  Maker(const RecordingData& data, bool dot) : data_(data), dot_(dot), n_(data.nodes.size()) {}

  Layout make() {
    zones();
    second_graphs();
    order();
    parts();
    layers();
    leaves();
    rows();
    columns();
    return std::move(out_);
  }

 private:
  const NodeRow& node(Id i) const { return data_.nodes[i]; }
  Place& at(Id i) { return out_.nodes[i]; }
  bool plain(Id i) { return at(i).zone == kOperations; }

  void zones() {
    out_.nodes.resize(n_);
    users_.resize(n_);
    for (size_t i = 0; i < n_; ++i) {
      const NodeRow& row = data_.nodes[i];
      Place& p = out_.nodes[i];
      p.lane = std::max<Id>(row.device, 0);
      p.zone = row.leaf ? kLeaves : row.reduces && row.operation < 0 ? kReductions : kOperations;
      p.bar = p.zone == kOperations && is_movement(row);
      for (const auto& e : row.edges)
        if (e.to >= 0) users_[e.to].push_back(static_cast<Id>(i));
    }
  }

  // A graph that a backward recorded stands below that backward's root, though no gradient goes
  // there.
  void second_graphs() {
    below_.assign(n_, -1);
    std::vector<std::pair<uint64_t, Id>> roots;
    for (const EventRow& e : data_.events)
      if (e.kind == "backward_begin" && e.node >= 0 && plain(e.node))
        roots.emplace_back(e.time, e.node);
    for (size_t i = 0; i < n_; ++i) {
      const NodeRow& row = data_.nodes[i];
      if (!row.in_backward || row.operation < 0 || !plain(static_cast<Id>(i))) continue;
      const uint64_t time = data_.operations[row.operation].start;
      for (const auto& [begin, root] : roots)
        if (begin <= time && root != static_cast<Id>(i)) below_[i] = root;
      if (below_[i] >= 0) users_[below_[i]].push_back(static_cast<Id>(i));
    }
  }

  // Nodes come after the targets of their gradients. A file may hold a cycle: its nodes come last,
  // by number.
  void order() {
    std::vector<int> missing(n_, 0);
    for (size_t i = 0; i < n_; ++i) {
      missing[i] = below_[i] >= 0;
      for (const auto& e : data_.nodes[i].edges) missing[i] += e.to >= 0;
    }
    for (size_t i = 0; i < n_; ++i)
      if (!missing[i]) order_.push_back(static_cast<Id>(i));
    for (size_t next = 0; next < order_.size(); ++next)
      for (const Id user : users_[order_[next]])
        if (--missing[user] == 0) order_.push_back(user);
    if (order_.size() == n_) return;
    for (size_t i = 0; i < n_; ++i)
      if (missing[i] > 0) order_.push_back(static_cast<Id>(i));
  }

  // Leaves and reductions belong to every step that uses them, and join none.
  void parts() {
    std::vector<Id> parent(n_);
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&](Id i) {
      while (parent[i] != i) i = parent[i] = parent[parent[i]];
      return i;
    };
    for (size_t i = 0; i < n_; ++i) {
      if (below_[i] >= 0) parent[root(static_cast<Id>(i))] = root(below_[i]);
      for (const auto& e : data_.nodes[i].edges)
        if (e.to >= 0 && plain(static_cast<Id>(i)) && plain(e.to))
          parent[root(static_cast<Id>(i))] = root(e.to);
    }
    std::map<Id, int> number;
    for (size_t i = 0; i < n_; ++i)
      if (plain(static_cast<Id>(i)))
        at(static_cast<Id>(i)).part =
            number.emplace(root(static_cast<Id>(i)), static_cast<int>(number.size())).first->second;
    parts_ = static_cast<int>(number.size());
  }

  // The longest way to a node without edges, below what came before in the same lanes.
  void layers() {
    layer_.assign(n_, 0);
    for (const Id i : order_) {
      if (!plain(i)) continue;
      if (below_[i] >= 0) layer_[i] = layer_[below_[i]] + 1;
      for (const auto& e : node(i).edges)
        if (e.to >= 0 && plain(e.to)) layer_[i] = std::max(layer_[i], layer_[e.to] + 1);
    }
    std::vector<int> depth(parts_, 0);
    std::vector<Ids> lanes(parts_);
    for (size_t i = 0; i < n_; ++i) {
      const Place& p = out_.nodes[i];
      if (p.zone != kOperations) continue;
      depth[p.part] = std::max(depth[p.part], layer_[i] + 1);
      lanes[p.part].push_back(p.lane);
    }
    const std::vector<int> by_time = parts_by_time();
    std::vector<int> bottom(std::max<size_t>(data_.devices.size(), 1), 0), begin(parts_, 0);
    for (const int part : by_time) {
      for (const Id lane : lanes[part]) begin[part] = std::max(begin[part], bottom[lane]);
      for (const Id lane : lanes[part]) bottom[lane] = begin[part] + depth[part];
    }
    for (size_t i = 0; i < n_; ++i)
      if (plain(static_cast<Id>(i))) layer_[i] += begin[out_.nodes[i].part];
    layers_ = bottom.empty() ? 0 : *std::max_element(bottom.begin(), bottom.end());
  }

  // Parts in the order in which each of their lanes reached them. Lanes run concurrently, so by the
  // clock one replica may be in its second part before another is in its first.
  std::vector<int> parts_by_time() {
    const auto time = [this](size_t i) {
      const Id op = data_.nodes[i].operation;
      return op >= 0 ? data_.operations[op].start : uint64_t{0};
    };
    std::vector<uint64_t> first(parts_, ~uint64_t{0});
    std::map<std::pair<int, int>, uint64_t> came;  // lane and part
    for (size_t i = 0; i < n_; ++i) {
      const Place& p = out_.nodes[i];
      if (p.zone != kOperations) continue;
      first[p.part] = std::min(first[p.part], time(i));
      const auto [at, fresh] = came.try_emplace({p.lane, p.part}, time(i));
      if (!fresh) at->second = std::min(at->second, time(i));
    }
    std::vector<std::tuple<int, uint64_t, int>> visits;
    for (const auto& [key, when] : came) visits.emplace_back(key.first, when, key.second);
    std::sort(visits.begin(), visits.end());
    std::vector<std::vector<int>> next(parts_);
    std::vector<int> before(parts_, 0);
    for (size_t v = 1; v < visits.size(); ++v) {
      if (std::get<0>(visits[v]) != std::get<0>(visits[v - 1])) continue;
      next[std::get<2>(visits[v - 1])].push_back(std::get<2>(visits[v]));
      ++before[std::get<2>(visits[v])];
    }
    // The earliest part without a part before it; of all parts, where lanes contradict each other.
    std::set<std::pair<uint64_t, int>> free, left;
    for (int part = 0; part < parts_; ++part) {
      left.emplace(first[part], part);
      if (before[part] == 0) free.emplace(first[part], part);
    }
    std::vector<int> out;
    while (!left.empty()) {
      const auto chosen = free.empty() ? *left.begin() : *free.begin();
      free.erase(chosen);
      left.erase(chosen);
      out.push_back(chosen.second);
      for (const int part : next[chosen.second])
        if (--before[part] == 0 && left.count({first[part], part})) free.emplace(first[part], part);
    }
    return out;
  }

  // The first operation that uses it, directly or through reductions.
  void leaves() {
    anchor_.assign(n_, -1);
    for (auto it = order_.rbegin(); it != order_.rend(); ++it) {
      if (plain(*it)) continue;
      for (const Id user : users_[*it]) {
        const Id a = plain(user) ? user : anchor_[user];
        if (a >= 0 && (anchor_[*it] < 0 ||
                       std::tie(layer_[a], a) < std::tie(layer_[anchor_[*it]], anchor_[*it])))
          anchor_[*it] = a;
      }
      layer_[*it] = anchor_[*it] < 0 ? layers_ : layer_[anchor_[*it]];
      at(*it).part = anchor_[*it] < 0 ? parts_ : at(anchor_[*it]).part;
    }
  }

  // Rows of a layer: first the movements before it outside of the graph, then its nodes that move
  // data between lanes, then its other nodes. The leaves next to them decide how many rows these
  // take, two leaves a row.
  void rows() {
    std::vector<std::vector<MovementBar>> bars(layers_ + 2);
    movement_bars(bars);
    std::vector<char> moves(layers_ + 1, 0), others(layers_ + 1, 0);
    std::map<std::tuple<int, int>, int> stacks;
    std::vector<int> high(layers_ + 1, 1);
    for (size_t i = 0; i < n_; ++i)
      if (plain(static_cast<Id>(i))) (out_.nodes[i].bar ? moves : others)[layer_[i]] = 1;
    // A reduction stands next to its leaf; only the leaf takes a place.
    std::vector<int> stack(n_, 0);
    for (const Id i : order_) {
      if (plain(i)) continue;
      Id leads_to = -1;
      for (const auto& e : node(i).edges)
        if (e.to >= 0 && !plain(e.to) && at(e.to).lane == at(i).lane && layer_[e.to] == layer_[i])
          leads_to = e.to;
      if (leads_to >= 0 && at(i).zone == kReductions) {
        stack[i] = stack[leads_to];
        continue;
      }
      stack[i] = stacks[{at(i).lane, layer_[i]}]++;
      high[layer_[i]] = std::max(high[layer_[i]], (std::min(stack[i] + 1, kStack) + 1) / 2);
      others[layer_[i]] = 1;
    }
    std::vector<int> row_of_moves(layers_ + 1, 0), row_of_others(layers_ + 1, 0);
    int row = 0;
    for (int layer = 0; layer <= layers_; ++layer) {
      for (MovementBar& bar : bars[layer]) {
        bar.row = row++;
        out_.bars.push_back(std::move(bar));
      }
      row_of_moves[layer] = row;
      row += moves[layer];
      row_of_others[layer] = row;
      row += others[layer] ? high[layer] : 0;
    }
    for (MovementBar& bar : bars[layers_ + 1]) {
      bar.row = row++;
      out_.bars.push_back(std::move(bar));
    }
    out_.rows = row;
    for (size_t i = 0; i < n_; ++i) {
      Place& p = out_.nodes[i];
      if (p.zone == kOperations) {
        p.row = (p.bar ? row_of_moves : row_of_others)[layer_[i]];
      } else {
        p.row = row_of_others[layer_[i]] + stack[i] % kStack / 2;
        p.half = stack[i] % 2;
        p.column = stack[i] / kStack;
      }
    }
  }

  void movement_bars(std::vector<std::vector<MovementBar>>& bars) const {
    // The layer of the first operation of any lane that began later.
    std::vector<std::pair<uint64_t, int>> begins;
    for (size_t i = 0; i < n_; ++i)
      if (data_.nodes[i].operation >= 0)
        begins.emplace_back(data_.operations[data_.nodes[i].operation].start, layer_[i]);
    std::sort(begins.begin(), begins.end());
    for (size_t i = begins.size(); i-- > 1;)
      begins[i - 1].second = std::min(begins[i - 1].second, begins[i].second);
    for (size_t i = 0; i < data_.movements.size(); ++i) {
      const MovementRow& m = data_.movements[i];
      if (is_own(m, data_)) continue;
      const Ids from = lanes_of(m.from, data_), to = lanes_of(m.to, data_);
      if (from.empty() && to.empty()) continue;
      const auto next =
          std::lower_bound(begins.begin(), begins.end(), std::pair<uint64_t, int>(m.start, -1));
      auto& here = bars[next == begins.end() ? layers_ + 1 : next->second];
      const auto same = std::find_if(here.begin(), here.end(), [&](const MovementBar& b) {
        return b.kind == m.kind && b.from == from && b.to == to;
      });
      if (same != here.end()) {
        same->movements.push_back(static_cast<Id>(i));
      } else {
        here.push_back({0, m.kind, {static_cast<Id>(i)}, from, to});
      }
    }
  }

  // Below the leftmost target of the node's gradients, so that a chain is a straight line; if that
  // is taken, the next free column.
  void columns() {
    std::map<std::tuple<int, int>, Ids> groups;  // lane and layer
    std::vector<Ids> lanes(std::max<size_t>(data_.devices.size(), 1));
    for (const Id i : order_) {
      if (!plain(i)) continue;
      groups[{layer_[i], at(i).lane}].push_back(i);
      lanes[at(i).lane].push_back(i);
    }
    out_.columns_by = "sequence";
    for (auto& [key, ids] : groups) {
      std::vector<std::tuple<int, uint64_t, Id>> wanted;
      for (const Id i : ids) {
        int column = 1 << 20;
        for (const auto& e : node(i).edges)
          if (e.to >= 0 && plain(e.to) && at(e.to).lane == at(i).lane)
            column = std::min(column, at(e.to).column);
        wanted.emplace_back(column == 1 << 20 ? 0 : column, node(i).sequence, i);
      }
      std::sort(wanted.begin(), wanted.end());
      int next = 0;
      for (const auto& [column, sequence, i] : wanted)
        next = (at(i).column = std::max(column, next)) + 1;
    }
    if (!dot_ || n_ > kDotNodes) return;
    for (const Ids& lane : lanes) {
      if (lane.empty()) continue;
      const std::vector<int> columns = detail::columns_by_dot(data_, out_.nodes, lane);
      if (columns.empty()) return;
      for (size_t i = 0; i < lane.size(); ++i) at(lane[i]).column = columns[i];
      out_.columns_by = "dot";
    }
  }

  const RecordingData& data_;
  const bool dot_;
  const size_t n_;
  Layout out_;
  std::vector<Ids> users_;
  Ids order_, anchor_, below_;
  std::vector<int> layer_;
  int parts_ = 0, layers_ = 0;
};

}  // namespace

Layout lay_out(const RecordingData& data, bool dot) { return Maker(data, dot).make(); }

}  // namespace see
}  // namespace ramet
