// The entries of an archive, to be changed and loaded again.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "nn/formats/zip/zip_internal.h"
#include "nn/script/script.h"
#include "tests/error_text.h"
#include "tests/nn/script/script_files.h"

namespace ramet::script_files {

inline std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

struct Entries {
  std::vector<std::pair<std::string, std::string>> list;

  explicit Entries(const std::string& name) {
    formats::detail::ZipReader zip("test", file(name));
    for (const auto& e : zip.entries()) list.emplace_back(e.name, zip.text(e));
  }
  std::string& operator[](const std::string& name) {
    for (auto& [entry, text] : list)
      if (entry.substr(entry.find('/') + 1) == name) return text;
    list.emplace_back(list[0].first.substr(0, list[0].first.find('/') + 1) + name, "");
    return list.back().second;
  }
  std::string packed() const {
    std::vector<formats::detail::ZipPart> parts;
    for (const auto& [name, text] : list) parts.push_back({name, {{text.data(), text.size()}}});
    const std::vector<char> bytes = formats::detail::zip_bytes("test", parts, false);
    return {bytes.begin(), bytes.end()};
  }
  std::string load_error(const script::LoadOptions& options = {}) const {
    std::istringstream in(packed());
    return error_of([&] { jit::load(in, options); });
  }
};

inline void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

}  // namespace ramet::script_files
