#include "parallel/distributed/group/operation_record.h"

#include <cstdio>
#include <map>
#include <sstream>

#include "parallel/distributed/group/group_state_internal.h"
#include "parallel/distributed/meet/meeting_internal.h"
#include "parallel/distributed/wire/channel_internal.h"

namespace ramet::distributed {

const char* name_of(OperationRecord::State state) {
  static const char* const names[] = {"queued", "running", "done", "failed"};
  return names[static_cast<size_t>(state)];
}

namespace detail {

uint64_t OperationRing::on_called(const Header& header, int peer, bool sends) {
  Entry e{header, peer, sends, State::queued, Clock::now(), {}, {}};
  if (entries_.size() < kRecordedOperations) entries_.push_back(e);
  else entries_[next_ % kRecordedOperations] = e;
  return next_++;
}

OperationRing::Entry* OperationRing::find(uint64_t ticket) {
  return next_ - ticket <= kRecordedOperations ? &entries_[ticket % kRecordedOperations] : nullptr;
}

void OperationRing::on_began(uint64_t ticket) {
  Entry* const e = find(ticket);
  if (!e) return;
  e->state = State::running;
  e->began = Clock::now();
}

void OperationRing::on_ended(uint64_t ticket, bool well) {
  Entry* const e = find(ticket);
  if (!e) return;
  e->state = well ? State::done : State::failed;
  e->ended = Clock::now();
}

std::vector<OperationRecord> OperationRing::records() const {
  std::vector<OperationRecord> out;
  for (uint64_t i = next_ - entries_.size(); i < next_; ++i) {
    const Entry& e = entries_[i % kRecordedOperations];
    OperationRecord& r = out.emplace_back();
    r.number = e.what.sequence;
    r.text = e.what.text();
    r.peer = e.peer;
    r.sends = e.sends;
    r.state = e.state;
    r.called = seconds(e.called);
    if (e.began) r.began = seconds(*e.began);
    if (e.ended) r.ended = seconds(*e.ended);
  }
  return out;
}

}  // namespace detail

namespace {

using State = OperationRecord::State;

constexpr size_t kTold = 5;  // operations of each rank in a report

std::string line_of(const OperationRecord& r, double now) {
  const double since = r.began.value_or(r.called), until = r.ended.value_or(now);
  std::string out = ramet::detail::formatted("%-7s at %.3f s, %s%.3f s: ", name_of(r.state), since,
                                             r.ended ? "took " : "for ", until - since);
  if (r.peer >= 0) out += (r.sends ? "to rank " : "from rank ") + std::to_string(r.peer) + ", ";
  return out + r.text;
}

/// What a rank reports to the others: how far it came among the operations of all ranks, and its
/// last operations.
struct Told {
  uint64_t done = 0;  // the last that succeeded; 0: none that it remembers
  std::string next;   // the operation that it called next; empty: none
  std::string lines;
  std::string packed() const { return std::to_string(done) + "\n" + next + "\n" + lines; }
  static Told unpacked(const std::string& text) {
    Told t;
    auto in = ramet::detail::classic<std::istringstream>(text);
    std::string number;
    std::getline(in, number);
    std::getline(in, t.next);
    t.done = std::strtoull(number.c_str(), nullptr, 10);
    t.lines.assign(std::istreambuf_iterator<char>(in), {});
    return t;
  }
};

Told told_of(const std::vector<OperationRecord>& records, double now) {
  Told t;
  for (const OperationRecord& r : records)
    if (r.peer < 0) {
      if (r.state == State::done) t.done = r.number;
      else if (t.next.empty()) t.next = r.text;
    }
  for (size_t i = records.size() - std::min(records.size(), kTold); i < records.size(); ++i)
    t.lines += "    " + line_of(records[i], now) + "\n";
  return t;
}

// Says how far the ranks came: one group of ranks for each next operation that they called.
std::string summary(const std::map<int, Told>& all, int size) {
  std::map<std::pair<uint64_t, std::string>, std::vector<int>> places;
  std::vector<int> silent;
  for (int r = 0; r < size; ++r) {
    const auto at = all.find(r);
    if (at == all.end()) silent.push_back(r);
    else places[{at->second.done, at->second.next}].push_back(r);
  }
  std::string out;
  for (const auto& [place, ranks] : places) {
    out += "  " + detail::rank_list(ranks) + ": ";
    out += place.first ? "done up to operation " + std::to_string(place.first) : "nothing done";
    out += place.second.empty() ? ", called nothing after it" : ", then " + place.second;
    out += "\n";
  }
  if (!silent.empty())
    out += "  " + detail::rank_list(silent) +
           ": told nothing (ended, stuck elsewhere, or did not ask for a report)\n";
  return out;
}

}  // namespace

std::vector<OperationRecord> ProcessGroup::recent_operations() const {
  return state_->recent_operations();
}

std::string ProcessGroup::report(Milliseconds patience) const {
  RAMET_CHECK(patience.count() >= 0, "report", "patience: got ", patience.count(),
              " ms, expected 0 or more");
  const std::exception_ptr failure = state_->failure();
  RAMET_CHECK(failure, "report", "the group '", name(),
              "' has not failed: recent_operations() says what this rank does");
  const Deadline deadline = deadline_in(patience);
  const Told mine = told_of(recent_operations(), state_->age());
  std::map<int, Told> all{{rank(), mine}};
  std::string trouble;
  try {
    const auto key = [](int r) { return "report/" + std::to_string(r); };
    store()->set(key(rank()), mine.packed());
    for (int r = 0; r < size(); ++r)
      if (r != rank())
        if (const auto theirs = store()->find(key(r), deadline)) all[r] = Told::unpacked(*theirs);
  } catch (const Error& e) {
    trouble = "  (the store cannot be asked for more: " + std::string(e.what()) + ")\n";
  }
  std::string out = "group '" + name() + "' of " + std::to_string(size()) + " ranks failed: ";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) { out += e.what(); }
  out += "\n" + summary(all, size()) + trouble;
  for (const auto& [r, told] : all)
    out += "  the last of rank " + std::to_string(r) + ":\n" + told.lines;
  return out;
}

}  // namespace ramet::distributed
