#include "runtime/base/logging.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/config.h"
#include "runtime/base/thread_pool.h"

namespace ramet {
namespace {

// Of a program that has set no handler yet: so this test is the first.
TEST(Logging, MistakesArePrintedWhereNoHandlerWasSet) {
  const auto place = [](int i) { RAMET_WARN_MISTAKE("mistake ", i); };
  const auto other = [](int i) { RAMET_WARN_MISTAKE("other ", i); };
  testing::internal::CaptureStderr();
  RAMET_WARN("no mistake");
  std::thread([&] { place(1); }).join();
  place(2);
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_EQ(printed, "ramet: warning: mistake 1\n");
  testing::internal::CaptureStderr();
  std::vector<std::string> heard;
  set_log_handler(
      [&](LogLevel level, const std::string& m) { heard.push_back(detail::join(level, ": ", m)); });
  place(3), other(4), other(5);
  set_log_handler({});
  place(6), other(7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(heard, (std::vector<std::string>{"warning: mistake 3", "warning: other 4",
                                             "warning: other 5"}));
}

TEST(Logging, QuietUntilAsked) {
  int evaluated = 0;
  EXPECT_FALSE(logging());
  log(LogLevel::Warning, "nobody hears ", 1);
  std::vector<std::string> heard;
  set_log_handler([&](LogLevel level, const std::string& m) {
    heard.push_back(detail::join(level, ": ", m));
    log(LogLevel::Info, "from inside");  // dropped
  });
  log(LogLevel::Error, "n=", 2, " ", 0.5);
  RAMET_WARN("careful, ", ++evaluated);
  EXPECT_EQ(heard, (std::vector<std::string>{"error: n=2 0.5", "warning: careful, 1"}));
  set_log_handler({});
  log(LogLevel::Error, "silence");
  EXPECT_EQ(heard.size(), 2u);
}

TEST(Logging, OnceMeansTheFirstThatIsHeard) {
  const auto place = [] { RAMET_WARN_ONCE("once"); };
  place();  // without a handler: does not count
  int heard = 0;
  set_log_handler([&](LogLevel, const std::string&) { ++heard; });
  place();
  place();
  EXPECT_EQ(heard, 1);
  set_log_handler({});
}

TEST(Logging, HandlersMayThrowAndChange) {
  int second = 0;
  set_log_handler([&](LogLevel, const std::string&) {
    set_log_handler([&](LogLevel, const std::string&) { ++second; });
    throw std::runtime_error("no");
  });
  log(LogLevel::Info, "a");
  log(LogLevel::Info, "b");
  EXPECT_EQ(second, 1);
  set_log_handler({});
}

TEST(Logging, AThreadsListenerHearsItsOwnThreadAlone) {
  static std::vector<std::string> own;
  std::vector<std::string> others;
  const LogListener listen = [](LogLevel level, const std::string& m) {
    RAMET_WARN("from inside");  // dropped
    if (level == LogLevel::Info) return false;
    own.push_back(detail::join(level, ": ", m));
    throw std::runtime_error("caught");
  };
  EXPECT_EQ(set_thread_log_listener(listen), nullptr);
  EXPECT_TRUE(logging());  // without a handler
  RAMET_WARN("a");
  set_log_handler([&](LogLevel, const std::string& m) { others.push_back(m); });
  RAMET_WARN("b");
  log(LogLevel::Info, "not for it");
  std::thread([] {
    RAMET_WARN("c");
    set_thread_log_listener([](LogLevel, const std::string&) { return true; });
    RAMET_WARN("d");
  }).join();  // its listener goes with it
  EXPECT_EQ(set_thread_log_listener(nullptr), listen);
  RAMET_WARN("e");
  set_log_handler({});
  EXPECT_FALSE(logging());
  EXPECT_EQ(own, (std::vector<std::string>{"warning: a", "warning: b"}));
  EXPECT_EQ(others, (std::vector<std::string>{"not for it", "c", "e"}));
}

TEST(Logging, OneMessageAtATime) {
  int inside = 0, most = 0, heard = 0;
  set_log_handler([&](LogLevel, const std::string&) {
    most = std::max(most, ++inside);
    std::this_thread::yield();
    --inside;
    ++heard;
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) log(LogLevel::Info, i);
    });
  for (auto& t : threads) t.join();
  set_log_handler({});
  EXPECT_EQ(most, 1);
  EXPECT_EQ(heard, 200);
}

TEST(Logging, StandardError) {
  testing::internal::CaptureStderr();
  set_log_handler(log_to_stderr());
  RAMET_WARN("watch out");
  set_log_handler({});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "ramet: warning: watch out\n");
}

TEST(Config, NamesTheBuild) {
  const std::string text = runtime_config();
  EXPECT_NE(text.find(std::string("ramet: ") + version() + "\n"), std::string::npos);
  EXPECT_NE(text.find("threads: " + std::to_string(get_num_threads()) + "\n"), std::string::npos);
  EXPECT_NE(text.find("cpu devices: 8\n"), std::string::npos);
  EXPECT_NE(text.find("compiler: "), std::string::npos);
}

}  // namespace
}  // namespace ramet
