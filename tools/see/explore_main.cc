// explore: see --help, and ../explore for the script that builds and starts it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "tools/see/explore.h"
#include "tools/see/explorer/compare.h"
#include "tools/see/recording_file.h"

int main(int argc, char** argv) {
  using namespace ramet::see;
  CLI::App app(
      "Shows a recording of a step: what is in it here, and all of it on a page for a browser.",
      "explore");
  std::vector<std::string> files;
  std::string out;
  bool no_page = false;
  bool ranks = false;
  app.add_option("FILE", files, "a recording (ramet::see::Recording::write); two are compared")
      ->required();
  app.add_flag("--ranks", ranks, "the files are of the ranks of one step, which is shown as one");
  app.add_option("-o,--out", out, "the page; by default FILE with .html for its ending");
  app.add_flag("--no-page", no_page, "the summary alone");
  CLI11_PARSE(app, argc, argv);
  if (!ranks && files.size() > 2) {
    std::fprintf(stderr,
                 "explore: got %zu files, expected one, or two that are compared "
                 "(--ranks: those of several ranks)\n",
                 files.size());
    return 2;
  }
  try {
    std::vector<RecordingData> all;
    for (const std::string& file : files) all.push_back(read(file));
    if (ranks) all = {merge(all)};
    if (out.empty()) {
      out = files[0];
      for (const std::string_view end : {".gz", ".json", ".ramet"})
        if (out.size() > end.size() && out.ends_with(end)) out.resize(out.size() - end.size());
      out += ".html";
    }
    std::string text;
    for (const RecordingData& data : all) text += summary(data);
    if (all.size() == 2) text += "compared: " + compare(all[0], all[1]).text + "\n";
    if (!no_page) {
      if (all.size() == 2) explore(all[0], all[1], out);
      else explore(all[0], out);
      text += "page: " + out + "\n";
    }
    std::fputs(text.c_str(), stdout);
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "explore: %s\n", e.what());
    return 1;
  }
}
