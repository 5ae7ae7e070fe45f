#include "tools/training/graph_svg.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <sstream>

namespace ramet::training {

namespace {

using autograd::GraphPicture;

constexpr double kHeight = 26, kLayerGap = 34, kGap = 14, kMargin = 40, kCharacter = 6.3;

// Sugiyama, Tagawa and Toda's method (1981): layers, an order in each layer with few crossings,
// then coordinates. An edge over several layers becomes a chain of points, so that it finds its way
// between the boxes.
struct Layout {
  struct Item {
    size_t vertex;  // kPoint: a point of a long edge
    size_t layer;
    double width, x = 0;
    std::vector<size_t> up, down;  // neighbours, items
  };
  static constexpr size_t kPoint = static_cast<size_t>(-1);
  std::vector<Item> items;                 // the first ones are the vertices
  std::vector<std::vector<size_t>> rows;   // items of each layer, from left to right
  std::vector<std::vector<size_t>> paths;  // of each edge: the items it passes

  Layout(const GraphPicture& graph, const std::vector<double>& widths) {
    const size_t n = graph.vertices.size();
    std::vector<size_t> layer(n, 0);
    // edges lead to later vertices
    for (const auto& e : graph.edges) layer[e.to] = std::max(layer[e.to], layer[e.from] + 1);
    // A reduction or a leaf that only waits for the vertex above it hangs directly below.
    for (size_t v = 0; v < n; ++v) items.push_back({v, layer[v], widths[v], 0, {}, {}});
    for (const auto& e : graph.edges) {
      std::vector<size_t> path = {e.from};
      for (size_t l = layer[e.from] + 1; l < layer[e.to]; ++l) {
        items.push_back({kPoint, l, 2, 0, {}, {}});
        path.push_back(items.size() - 1);
      }
      path.push_back(e.to);
      for (size_t i = 0; i + 1 < path.size(); ++i) {
        items[path[i]].down.push_back(path[i + 1]);
        items[path[i + 1]].up.push_back(path[i]);
      }
      paths.push_back(std::move(path));
    }
    for (size_t i = 0; i < items.size(); ++i) {
      rows.resize(std::max(rows.size(), items[i].layer + 1));
      rows[items[i].layer].push_back(i);
    }
    order();
    place();
  }

 private:
  // Each row is sorted by the mean place of its neighbours in the row before, down and up again;
  // the best arrangement stays.
  void order() {
    auto best = rows;
    size_t fewest = crossings();
    for (int sweep = 0; sweep < 24 && fewest > 0; ++sweep) {
      const bool downwards = sweep % 2 == 0;
      for (size_t k = 1; k < rows.size(); ++k)
        sort_row(downwards ? k : rows.size() - 1 - k, downwards);
      if (const size_t now = crossings(); now < fewest) fewest = now, best = rows;
    }
    rows = best;
  }
  void sort_row(size_t r, bool by_upper) {
    std::vector<double> place(items.size(), 0);
    const auto& other = rows[by_upper ? r - 1 : r + 1];
    for (size_t i = 0; i < other.size(); ++i) place[other[i]] = static_cast<double>(i);
    std::vector<std::pair<double, size_t>> keyed;
    for (size_t i = 0; i < rows[r].size(); ++i) {
      const auto& near = by_upper ? items[rows[r][i]].up : items[rows[r][i]].down;
      double mean = static_cast<double>(i) * static_cast<double>(other.size()) /
                    static_cast<double>(rows[r].size());
      if (!near.empty()) {
        mean = 0;
        for (size_t j : near) mean += place[j];
        mean /= static_cast<double>(near.size());
      }
      keyed.emplace_back(mean, rows[r][i]);
    }
    std::stable_sort(keyed.begin(), keyed.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (size_t i = 0; i < keyed.size(); ++i) rows[r][i] = keyed[i].second;
  }
  size_t crossings() const {
    std::vector<size_t> place(items.size(), 0);
    for (const auto& row : rows)
      for (size_t i = 0; i < row.size(); ++i) place[row[i]] = i;
    size_t count = 0;
    for (const auto& row : rows) {
      std::vector<std::pair<size_t, size_t>> lines;
      for (size_t i : row)
        for (size_t j : items[i].down) lines.emplace_back(place[i], place[j]);
      for (size_t a = 0; a < lines.size(); ++a)
        for (size_t b = a + 1; b < lines.size(); ++b)
          count += lines[a].first < lines[b].first && lines[a].second > lines[b].second;
    }
    return count;
  }

  // Each item has a wanted position between its neighbours above and below. Takes the arrangement
  // without overlap that is nearest to these (isotonic regression by pooling adjacent violators).
  void place() {
    for (auto& row : rows) {
      double x = 0;
      for (size_t i : row) {
        items[i].x = x + items[i].width / 2;
        x += items[i].width + kGap;
      }
      for (size_t i : row) items[i].x -= x / 2;
    }
    for (int sweep = 0; sweep < 60; ++sweep) {
      for (size_t k = 0; k < rows.size(); ++k)
        place_row(rows[sweep % 2 == 0 ? k : rows.size() - 1 - k], sweep % 3);
    }
  }
  void place_row(const std::vector<size_t>& row, int by) {
    struct Block {
      double sum, weight;
      size_t count;
      double at() const { return sum / weight; }
    };
    std::vector<Block> blocks;
    std::vector<double> offset(row.size(), 0);
    for (size_t i = 1; i < row.size(); ++i)
      offset[i] = offset[i - 1] + (items[row[i - 1]].width + items[row[i]].width) / 2 + kGap;
    for (size_t i = 0; i < row.size(); ++i) {
      const Item& item = items[row[i]];
      double wish = 0, weight = 0;
      const auto count = [&](const std::vector<size_t>& near, double importance) {
        for (size_t j : near) {
          // Chains should be straight: both ends with one neighbour, and points of one edge, count
          // most.
          const bool chain = item.vertex == kPoint || items[j].vertex == kPoint || near.size() == 1;
          const double w = importance * (chain ? 4 : 1);
          wish += w * items[j].x;
          weight += w;
        }
      };
      count(item.up, by == 1 ? 0.2 : 1);
      count(item.down, by == 2 ? 0.2 : 1);
      if (weight == 0) wish = item.x, weight = 0.01;
      blocks.push_back({wish - weight * offset[i], weight, 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].at() > blocks.back().at()) {
        const Block last = blocks.back();
        blocks.pop_back();
        blocks.back().sum += last.sum, blocks.back().weight += last.weight,
            blocks.back().count += last.count;
      }
    }
    size_t i = 0;
    for (const Block& b : blocks)
      for (size_t k = 0; k < b.count; ++k, ++i) items[row[i]].x = b.at() + offset[i];
  }
};

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

struct Palette {
  const char *fill, *line;
};
constexpr Palette kDevices[] = {
    {"#dbe8fa", "#2563be"}, {"#dcf3e4", "#1f8a4c"}, {"#f3e3fa", "#8b3fb0"}, {"#fdf0cf", "#a97a09"},
    {"#d9f2f4", "#14808a"}, {"#fbdde6", "#b92c5d"}, {"#e7ebd3", "#66761a"}, {"#e4e1fb", "#5145c4"}};
constexpr Palette kReduce = {"#fbd5c0", "#c7431a"}, kLeaf = {"#f4f5f7", "#6b7280"};

std::string number(double v) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f", v);
  return text;
}

}  // namespace

std::string draw_graph(const GraphPicture& graph, const std::string& title) {
  std::vector<std::string> labels;
  std::vector<double> widths;
  std::map<int, Device> devices;
  for (const auto& v : graph.vertices) {
    labels.push_back(v.leaf && !v.label.empty() ? v.label : v.name);
    widths.push_back(22 + kCharacter * static_cast<double>(labels.back().size()));
    devices.emplace(v.device.ordinal(), v.device);
  }
  const Layout layout(graph, widths);
  double left = 0, right = 0;
  for (const auto& item : layout.items) {
    left = std::min(left, item.x - item.width / 2);
    right = std::max(right, item.x + item.width / 2);
  }
  const double head = 92, legend = 150.0 * static_cast<double>(devices.size() + 2);
  const double width =
      std::max({right - left, legend, 8.5 * static_cast<double>(title.size())}) + 2 * kMargin;
  const double height =
      head + kMargin + static_cast<double>(layout.rows.size()) * (kHeight + kLayerGap);
  const double shift = (width - (right - left)) / 2 - left;
  const auto x_of = [&](size_t item) { return layout.items[item].x + shift; };
  const auto y_of = [&](size_t item) {
    return head + static_cast<double>(layout.items[item].layer) * (kHeight + kLayerGap);
  };

  std::ostringstream out;
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << number(width) << "\" height=\""
      << number(height) << "\" viewBox=\"0 0 " << number(width) << ' ' << number(height)
      << "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"11\">\n"
      << "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" "
         "markerHeight=\"7\" orient=\"auto\">"
      << "<path d=\"M0 0.8 L7.4 4 L0 7.2 z\" fill=\"context-stroke\"/></marker></defs>\n"
      << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      << "<text x=\"" << kMargin
      << "\" y=\"34\" font-size=\"17\" font-weight=\"bold\" fill=\"#262b33\">" << escaped(title)
      << "</text>\n";
  double at = kMargin;
  const auto legend_entry = [&](const Palette& p, const std::string& text) {
    out << "<rect x=\"" << number(at) << "\" y=\"50\" width=\"16\" height=\"16\" rx=\"4\" fill=\""
        << p.fill << "\" stroke=\"" << p.line << "\"/>"
        << "<text x=\"" << number(at + 23) << "\" y=\"62\" fill=\"#4b5563\">" << escaped(text)
        << "</text>\n";
    at += 52 + kCharacter * static_cast<double>(text.size());
  };
  for (const auto& [ordinal, device] : devices)
    legend_entry(kDevices[ordinal % 8], device == Device(kCPU, 0) ? "cpu:0" : device.str());
  legend_entry(kReduce, "ReduceAdd: sum over devices");
  legend_entry(kLeaf, "parameter: where the gradient is kept");

  for (size_t e = 0; e < graph.edges.size(); ++e) {
    const auto& from = graph.vertices[graph.edges[e].from];
    const auto& to = graph.vertices[graph.edges[e].to];
    const bool reduces = to.reduces || from.reduces;
    const auto& path = layout.paths[e];
    out << "<path d=\"M" << number(x_of(path[0])) << ' ' << number(y_of(path[0]) + kHeight);
    for (size_t i = 1; i < path.size(); ++i) {
      const bool starts_at_point = i > 1, ends_at_point = i + 1 < path.size();
      const double x0 = x_of(path[i - 1]),
                   y0 = y_of(path[i - 1]) + (starts_at_point ? kHeight / 2 : kHeight);
      const double x1 = x_of(path[i]), y1 = y_of(path[i]) + (ends_at_point ? kHeight / 2 : 0);
      const double bend = (y1 - y0) * 0.5;
      out << " C" << number(x0) << ' ' << number(y0 + bend) << ' ' << number(x1) << ' '
          << number(y1 - bend) << ' ' << number(x1) << ' ' << number(y1);
    }
    const bool crosses = from.device != to.device;
    const char* color = reduces   ? kReduce.line
                        : crosses ? "#374151"
                                  : kDevices[from.device.ordinal() % 8].line;
    out << "\" fill=\"none\" stroke=\"" << color << "\" stroke-width=\""
        << (reduces ? "1.8" : "1.2") << '"'
        << (reduces || crosses ? "" : " stroke-opacity=\"0.65\"")
        << (crosses && !reduces ? " stroke-dasharray=\"5 3\"" : "")
        << " marker-end=\"url(#tip)\"/>\n";
  }
  for (size_t v = 0; v < graph.vertices.size(); ++v) {
    const auto& vertex = graph.vertices[v];
    const Palette p = vertex.leaf      ? kLeaf
                      : vertex.reduces ? kReduce
                                       : kDevices[vertex.device.ordinal() % 8];
    const double x = x_of(v), y = y_of(v);
    out << "<g><title>" << escaped(vertex.name + " " + vertex.label + " on " + vertex.device.str())
        << "</title><rect x=\"" << number(x - widths[v] / 2) << "\" y=\"" << number(y)
        << "\" width=\"" << number(widths[v]) << "\" height=\"" << kHeight << "\" rx=\""
        << (vertex.leaf ? 13 : 5) << "\" fill=\"" << p.fill << "\" stroke=\"" << p.line
        << "\" stroke-width=\"" << (vertex.reduces ? 1.8 : 1.1) << "\"/><text x=\"" << number(x)
        << "\" y=\"" << number(y + 17) << "\" text-anchor=\"middle\" fill=\"#1f2937\">"
        << escaped(labels[v]) << "</text></g>\n";
  }
  if (!graph.complete)
    out << "<text x=\"" << kMargin
        << "\" y=\"84\" fill=\"#b91c1c\">cut: the graph is larger</text>\n";
  out << "</svg>\n";
  return out.str();
}

}  // namespace ramet::training
