// main() of every test. A program holds the cases of several files, because linking one costs more
// than running its cases. Started by another name, x_test, it runs those of x_test.cc alone, as if
// they were a program of their own. x_gpus_test also runs those of x_test.cc
// (tests/parallel/BUILD).
#include <fnmatch.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>

namespace {

using testing::TestInfo;
using testing::UnitTest;

std::string last_part(const std::string& path) { return path.substr(path.rfind('/') + 1); }

template <class F> void for_each_case(const F& f) {
  const UnitTest& all = *UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) f(*suite.GetTestInfo(k));
  }
}

// Whether one of the patterns, with ':' between them, describes the case.
bool described(const std::string& name, const std::string& patterns) {
  for (size_t begin = 0; begin <= patterns.size();) {
    const size_t end = std::min(patterns.find(':', begin), patterns.size());
    if (fnmatch(patterns.substr(begin, end - begin).c_str(), name.c_str(), 0) == 0) return true;
    begin = end + 1;
  }
  return false;
}

// GoogleTest's own rule: POSITIVE-NEGATIVE, where no POSITIVE is all.
bool accepted(const std::string& name, const std::string& filter) {
  const size_t dash = std::min(filter.find('-'), filter.size());
  const std::string positive = filter.substr(0, dash);
  return (positive.empty() || described(name, positive)) &&
         (dash == filter.size() || !described(name, filter.substr(dash + 1)));
}

// Leaves the cases of a file, of those that --gtest_filter asks for. Whether the file has any.
bool select_file(const std::string& file) {
  std::string chosen;
  bool any = false;
  const std::string asked = GTEST_FLAG_GET(filter);
  for_each_case([&](const TestInfo& one) {
    if (last_part(one.file()) != file) return;
    any = true;
    const std::string name = std::string(one.test_suite_name()) + "." + one.name();
    if (accepted(name, asked)) chosen += (chosen.empty() ? "" : ":") + name;
  });
  if (any) GTEST_FLAG_SET(filter, chosen.empty() ? "-*" : chosen);
  return any;
}

// Whether the program was started by the name of one of its files, of those that it has.
bool select_by_name(std::string name) {
  const std::string gpus = "_gpus_test";
  if (select_file(name + ".cc")) return true;
  if (name.size() <= gpus.size() || name.compare(name.size() - gpus.size(), gpus.size(), gpus) != 0)
    return false;
  return select_file(name.substr(0, name.size() - gpus.size()) + "_test.cc");
}

// The name of the file that runs, however it was started. Empty where a program is no file of the
// system (WebAssembly).
std::string own_name() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return last_part(std::string(path, size > 0 ? static_cast<size_t>(size) : 0));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = last_part(argv[0]), own = own_name();
  testing::InitGoogleTest(&argc, argv);
  if (!own.empty() && name != own && !select_by_name(name)) {
    std::fprintf(stderr, "%s: got no case of a file of this name in %s, expected some\n",
                 name.c_str(), own.c_str());
    return 1;
  }
  return RUN_ALL_TESTS();
}
