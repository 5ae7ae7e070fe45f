// Lab 12: ranks, messages and a clock, and what the grader calls.
#pragma once
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/labs/grader.h"

namespace ramet::labs {

struct Message {
  std::vector<double> numbers;
  int dead = -1;  // a rank that is dead, where the sender knows of one
};

/// What receive() throws: the other rank's process has ended, so that its connection is closed;
/// nothing came in time.
struct Gone : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct TimedOut : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What all_reduce() throws.
struct DeadRank : std::runtime_error {
  int rank;
  explicit DeadRank(int r)
      : std::runtime_error("rank " + std::to_string(r) + " is dead"), rank(r) {}
};

class Ranks;

/// One rank's end of all connections. Ranks are threads here. A clock of their own counts seconds,
/// and goes on only while all of them wait: a timeout of a minute takes no time.
class Mail {
 public:
  Mail(Ranks& all, int rank) : all_(all), rank_(rank) {}
  int rank() const { return rank_; }
  int ranks() const;
  /// Seconds.
  double now() const;
  /// Never waits, and never fails: the other end may be dead.
  void send(int to, const Message& message);
  /// The next message of that rank. Waits until now() is `until`, then throws TimedOut; throws Gone
  /// where that rank is gone and has sent nothing more.
  Message receive(int from, double until);
  static constexpr double kForever = 1e300;

 private:
  Ranks& all_;
  int rank_;
};

struct DeadRankLab {
  std::vector<double> (*all_reduce)(Mail& mail, const std::vector<double>& numbers, double timeout);
};
void grade(const DeadRankLab& answer, Report& report);

}  // namespace ramet::labs

#define LAB_ANSWER(space) \
  ramet::labs::DeadRankLab { &space::all_reduce }
