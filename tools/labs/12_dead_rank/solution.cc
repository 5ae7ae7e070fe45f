// Lab 12: a rank that dies. task.md says what to do.
#include <stdexcept>
#include <vector>

#include "tools/labs/12_dead_rank/lab.h"

namespace lab {
using ramet::labs::DeadRank;
using ramet::labs::Gone;
using ramet::labs::Mail;
using ramet::labs::Message;
using ramet::labs::TimedOut;

// The sum of `numbers` over all ranks, added in the order of ranks, on every rank. Rank 0 collects,
// adds, and sends the sums to the others. Where a rank is dead, or sends nothing for `timeout`
// seconds, every other rank throws DeadRank with that rank's number, and no rank gets sums.
std::vector<double> all_reduce(Mail& mail, const std::vector<double>& numbers, double timeout) {
  const double until = mail.now() + timeout;
  if (mail.rank() == 0) {
    std::vector<double> sums = numbers;
    // HOLE 1: the work of rank 0. All messages that it waits for have to be there at `until`.
    //| for (int r = 1; r < mail.ranks(); ++r) {
    //|   const Message m = mail.receive(r, until);
    //|   for (size_t i = 0; i < sums.size(); ++i) sums[i] += m.numbers[i];
    //| }
    //| for (int r = 1; r < mail.ranks(); ++r) mail.send(r, {sums});
    int dead = -1;
    for (int r = 1; r < mail.ranks() && dead < 0; ++r) {
      try {
        const Message m = mail.receive(r, until);
        for (size_t i = 0; i < sums.size(); ++i) sums[i] += m.numbers[i];
      } catch (const std::runtime_error&) { dead = r; }  // Gone or TimedOut
    }
    for (int r = 1; r < mail.ranks(); ++r) mail.send(r, {dead < 0 ? sums : numbers, dead});
    if (dead >= 0) throw DeadRank(dead);
    // END 1
    return sums;
  }
  // HOLE 2: what the others do. Rank 0 has until `until` to collect: give it longer than that to
  // answer.
  //| mail.send(0, {numbers});
  //| return mail.receive(0, Mail::kForever).numbers;
  mail.send(0, {numbers});
  Message m;
  try {
    m = mail.receive(0, until + timeout);
  } catch (const std::runtime_error&) { m.dead = 0; }
  if (m.dead >= 0) throw DeadRank(m.dead);
  return m.numbers;
  // END 2
}

}  // namespace lab
