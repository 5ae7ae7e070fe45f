// A run that is killed at any moment leaves a whole checkpoint, and goes on from it to the same
// bits.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>

#include "nn/serialize/archive.h"
#include "runtime/observer.h"
#include "tests/tools/train_support.h"
#include "tools/training/run.h"

namespace ramet::training {
namespace {

// The parent starts no thread, so that its children may. With `dies_at` the child kills itself at
// the beginning of that step.
pid_t start(const Options& o, int dies_at = 0) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (!std::freopen("/dev/null", "w", stdout)) ::_exit(9);
    int steps = 0;
    Observer observer;
    observer.scope_begin = [&](const Scope& scope) {
      if (scope.name == "step" && ++steps == dies_at) ::kill(::getpid(), SIGKILL);
    };
    if (dies_at > 0) add_observer(observer);
    int code = 8;
    try {
      code = run(o);
    } catch (...) {}
    ::_exit(code);
  }
  return child;
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

// There is a whole checkpoint at every moment, the old run's or the new one's, and never a file of
// the old run beside the new one's checkpoint for longer than it takes to remove it.
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
  o.epochs = 30;
  o.model = "mlp";
  ASSERT_EQ(finish(start(o)), 0);
  o.out = folder_ + "/killed";
  int killed = 0, resumed = 0;
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
    if (!exists(out("checkpoint", "killed"))) continue;
    ASSERT_NO_THROW(step_of(out("checkpoint", "killed"))) << "after " << wait << " us";
  }
  EXPECT_GT(killed, 0);
  o.resume = exists(out("checkpoint", "killed"));
  ASSERT_EQ(finish(start(o)), 0);
  EXPECT_EQ(digest("killed"), digest("whole"));
  std::printf("killed %d times, resumed %d times\n", killed, resumed);
}

}  // namespace
}  // namespace ramet::training
