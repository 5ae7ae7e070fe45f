// A run that is killed at any moment leaves a whole checkpoint, and goes on from it to the same
// bits.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "nn/serialize/archive.h"
#include "runtime/observe/observer.h"
#include "tests/share.h"
#include "tests/tools/train_support.h"
#include "tools/training/run.h"

namespace ramet::training {
namespace {

// The parent starts no thread, so that its children may.
pid_t start(const Options& o, const Observer& observer = {}) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout)) ::_exit(9);
    if (observer.scope_begin || observer.kernel_begin) add_observer(observer);
    int code = 8;
    try {
      code = run(o);
    } catch (...) {}
    ::_exit(code);
  }
  return child;
}
// A child that kills itself at the beginning of a step.
pid_t start(const Options& o, int dies_at) {
  Observer observer;
  observer.scope_begin = [dies_at, steps = 0](const Scope& scope) mutable {
    if (scope.name == "step" && ++steps == dies_at) ::kill(::getpid(), SIGKILL);
  };
  return start(o, observer);
}
int finish(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

int64_t step_of(const std::string& checkpoint) {
  serialize::InputArchive archive;
  archive.load_from(checkpoint);
  IValue step;
  archive.read("step", step);
  return step.toInt();
}

// Files of that folder that were never moved to their names.
std::vector<std::string> temporaries(const std::string& folder) {
  std::vector<std::string> found;
  DIR* entries = ::opendir(folder.c_str());
  while (const dirent* entry = entries ? ::readdir(entries) : nullptr)
    if (std::strstr(entry->d_name, ".tmp.")) found.emplace_back(entry->d_name);
  if (entries) ::closedir(entries);
  return found;
}

// There is a whole checkpoint at every moment, the old run's or the new one's. A file of the old
// run stays with the new one's checkpoint only for the time that its removal takes.
TEST_F(TrainTest, ANewRunKilledAtItsFirstSteps) {
  Options o = options("whole");
  o.model = "mlp";
  o.dropout = 0.2;
  o.seed = 7;
  ASSERT_EQ(finish(start(o)), 0);
  Options old = options("again");
  old.epochs = 1;
  ASSERT_EQ(finish(start(old)), 0);
  o.out = old.out;
  for (const int step : {1, 4}) {
    o.resume = false;
    const pid_t child = start(o, step);
    int status = 0, looks = 0, missing = 0;
    for (; ::waitpid(child, &status, WNOHANG) == 0; ++looks)
      missing += !exists(out("checkpoint", "again"));
    ASSERT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(missing, 0) << "of " << looks << " looks";
    ASSERT_TRUE(exists(out("checkpoint", "again")));
    EXPECT_EQ(step_of(out("checkpoint", "again")), 0);
    for (const char* name : {"model.safetensors", "summary.json", "curve.png", "trace.json"})
      EXPECT_FALSE(exists(out(name, "again"))) << name;
    // As if it had been killed between the checkpoint and the removal.
    std::ofstream(out("summary.json", "again")) << "the old run's";
    o.resume = true;
    ASSERT_TRUE(WIFSIGNALED(finish(start(o, 1))));
    EXPECT_FALSE(exists(out("summary.json", "again")));
    ASSERT_EQ(finish(start(o)), 0);
    EXPECT_EQ(digest("again"), digest("whole"));
    EXPECT_EQ(summary("again").at("steps"), summary("whole").at("steps"));
  }
}

TEST_F(TrainTest, KilledAtAnyMoment) {
  Options o = options("whole");
  o.epochs = testing::one_repeat_in() > 1 ? 10 : 30;
  o.model = "mlp";
  ASSERT_EQ(finish(start(o)), 0);
  o.out = folder_ + "/killed";
  int killed = 0, resumed = 0;
  size_t left = 0;
  for (useconds_t wait = 3000; wait < 200000; wait = wait * 7 / 4) {
    o.resume = exists(out("checkpoint", "killed"));
    resumed += o.resume;
    const pid_t child = start(o);
    ::usleep(wait);
    ::kill(child, SIGKILL);
    const int status = finish(child);
    if (!WIFSIGNALED(status)) {
      ASSERT_EQ(status, 0);
      break;
    }
    ++killed;
    left += !temporaries(o.out).empty();
    if (!exists(out("checkpoint", "killed"))) continue;
    ASSERT_NO_THROW(step_of(out("checkpoint", "killed"))) << "after " << wait << " us";
  }
  EXPECT_GT(killed, 0);
  o.resume = exists(out("checkpoint", "killed"));
  ASSERT_EQ(finish(start(o)), 0);
  EXPECT_EQ(digest("killed"), digest("whole"));
  EXPECT_EQ(temporaries(o.out), std::vector<std::string>{});
  std::printf("killed %d times, %zu times in the middle of a file, resumed %d times\n", killed,
              left, resumed);
}

// What a killed run was writing goes; what another run writes, and files of the user, stay.
TEST_F(TrainTest, LeftoversOfDeadRunsAreRemoved) {
  Options o = options();
  o.model = "mlp";
  o.epochs = 1;
  const pid_t dead = ::fork();
  if (dead == 0) ::_exit(0);
  finish(dead);
  const auto name = [](const char* stem, pid_t pid) {
    return std::string(stem) + ".tmp." + std::to_string(pid) + ".0";
  };
  const std::vector<std::string> others{
      name("checkpoint", ::getpid()), name("checkpoint", 1),       name("notes", dead),
      "checkpoint.tmp.old",           "checkpoint.tmp.12345.text", "checkpoint.tmp..0",
      "checkpoint.tmp.99999999999.0"};
  for (const bool resume : {false, true}) {
    shell("mkdir -p '" + o.out + "'");
    for (const char* stem : {"checkpoint", "model.safetensors", "metrics.jsonl", "trace.json"})
      std::ofstream(out(name(stem, dead))) << "half";
    for (const std::string& other : others) std::ofstream(out(other)) << "not ours";
    o.resume = resume;
    ASSERT_EQ(finish(start(o)), 0);
    for (const char* stem : {"checkpoint", "model.safetensors", "metrics.jsonl", "trace.json"})
      EXPECT_FALSE(exists(out(name(stem, dead)))) << stem;
    for (const std::string& other : others) EXPECT_TRUE(exists(out(other))) << other;
  }
}

// Ctrl-C while the run is being made, at its first kernel: the folder is as it was.
TEST_F(TrainTest, InterruptedBeforeTheFirstFile) {
  Options o = options();
  o.model = "mlp";
  o.epochs = 1;
  ASSERT_EQ(finish(start(o)), 0);
  const std::string checkpoint = read_file(out("checkpoint")),
                    summary = read_file(out("summary.json"));
  o.seed = 2;
  Observer observer;
  observer.kernel_begin = [](const KernelCall&) { ::kill(::getpid(), SIGINT); };
  const int status = finish(start(o, observer));
  ASSERT_TRUE(WIFSIGNALED(status)) << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_EQ(read_file(out("checkpoint")), checkpoint);
  EXPECT_EQ(read_file(out("summary.json")), summary);
  EXPECT_EQ(temporaries(o.out), std::vector<std::string>{});
}

// Ctrl-C as soon as a new run has touched the folder: it stops after a step, with its checkpoint.
TEST_F(TrainTest, InterruptedAtTheFirstFile) {
  Options o = options();
  o.model = "mlp";
  o.epochs = 100000;
  for (int round = 0; round < 3; ++round) {
    const auto file = [&] {
      struct stat s = {};
      return ::stat(out("checkpoint").c_str(), &s) == 0 ? s.st_ino : 0;
    };
    const auto before = file();
    const pid_t child = start(o);
    int status = 0;
    while (file() == before && ::waitpid(child, &status, WNOHANG) == 0) {}
    ASSERT_NE(file(), before) << status;
    ::kill(child, SIGINT);
    status = finish(child);
    ASSERT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 128 + SIGINT);
    EXPECT_GT(step_of(out("checkpoint")), 0);
  }
}

}  // namespace
}  // namespace ramet::training
