#include "tools/see/explore.h"

#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/atomic_file.h"
#include "runtime/base/error.h"
#include "tools/see/explorer/compare.h"
#include "tools/see/explorer/layout.h"
#include "tools/see/explorer/page.h"
#include "tools/see/recording_file.h"

namespace ramet {
namespace see {

namespace {

using Json = nlohmann::json;

// Texts from anywhere may be invalid UTF-8: such bytes become the replacement character.
std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string layout_of(const RecordingData& data) {
  const Layout layout = lay_out(data);
  Json lane = Json::array(), zone = lane, row = lane, column = lane, half = lane, bar = lane,
       part = lane, bars = lane;
  for (const Place& p : layout.nodes) {
    lane.push_back(p.lane);
    zone.push_back(p.zone);
    row.push_back(p.row);
    column.push_back(p.column);
    half.push_back(p.half);
    bar.push_back(p.bar);
    part.push_back(p.part);
  }
  for (const MovementBar& b : layout.bars)
    bars.push_back({{"row", b.row},
                    {"kind", b.kind},
                    {"movements", b.movements},
                    {"from", b.from},
                    {"to", b.to}});
  return dumped({{"lane", lane},
                 {"zone", zone},
                 {"row", row},
                 {"column", column},
                 {"half", half},
                 {"bar", bar},
                 {"part", part},
                 {"bars", bars},
                 {"rows", layout.rows},
                 {"columns_by", layout.columns_by}});
}

// Adds the code of the recording's nodes only.
void add_formulas(const RecordingData& data, Json& out) {
  for (const NodeRow& node : data.nodes) {
    if (out.contains(node.name)) continue;
    std::string stem = node.name;
    while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9') stem.pop_back();
    Json pieces = Json::array();
    for (const std::string& name : {node.name, stem}) {
      const auto* end = detail::kFormulas + detail::kFormulaCount;
      const auto* found = std::lower_bound(
          detail::kFormulas, end, name,
          [](const detail::FormulaRow& row, const std::string& n) { return row.node < n; });
      if (found != end && found->node == name && (pieces.empty() || name != node.name))
        pieces.push_back({{"where", found->where}, {"code", found->code}});
    }
    if (!pieces.empty()) out[node.name] = pieces;
  }
}

std::string comparison_of(const RecordingData& first, const RecordingData& second) {
  const Comparison made = compare(first, second);
  Json rows = Json::array();
  for (const ComparedRow& row : made.rows)
    rows.push_back({{"kind", row.kind},
                    {"name", row.name},
                    {"first", row.first},
                    {"second", row.second},
                    {"same", row.same},
                    {"text", row.text}});
  return dumped({{"rows", rows}, {"first", made.first_difference}, {"text", made.text}});
}

std::string base64(const std::string& bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t n = std::min<size_t>(3, bytes.size() - i);
    uint32_t three = 0;
    for (size_t j = 0; j < 3; ++j)
      three = three << 8 | (j < n ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += j <= n ? kDigits[three >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::string page_of(const std::vector<const RecordingData*>& all) {
  std::string recordings, layouts;
  Json formulas = Json::object();
  for (const RecordingData* data : all) {
    recordings += (recordings.empty() ? "" : ",") + to_json(*data);
    layouts += (layouts.empty() ? "" : ",") + layout_of(*data);
    add_formulas(*data, formulas);
  }
  const std::string text =
      "{\"recordings\":[" + recordings + "],\"layouts\":[" + layouts +
      "],\"formulas\":" + dumped(formulas) +
      (all.size() == 2 ? ",\"comparison\":" + comparison_of(*all[0], *all[1]) : "") + "}";
  // Letters and digits only, so that no text of a recording is read as HTML.
  const std::string data = base64(detail::compressed(text));
  const size_t at = detail::kPage.find(detail::kDataMark);
  RAMET_CHECK(at != std::string_view::npos, "explore", "the page has no place for a recording");
  std::string out(detail::kPage.substr(0, at));
  out += data;
  out += detail::kPage.substr(at + detail::kDataMark.size());
  return out;
}

}  // namespace

std::string explorer_page(const RecordingData& recording) { return page_of({&recording}); }
std::string explorer_page(const RecordingData& first, const RecordingData& second) {
  return page_of({&first, &second});
}

void explore(const RecordingData& recording, const std::string& path) {
  write_file_atomically(path, explorer_page(recording));
}
void explore(const RecordingData& first, const RecordingData& second, const std::string& path) {
  write_file_atomically(path, explorer_page(first, second));
}

}  // namespace see
}  // namespace ramet
