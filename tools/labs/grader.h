// What all graders share: steps, and the texts for them. The first wrong step ends the run.
#pragma once
#include <cstdio>
#include <exception>
#include <functional>
#include <sstream>
#include <string>

namespace ramet::labs {

/// The pieces one after the other; floating-point numbers with up to 9 digits.
template <class... Piece> std::string words(const Piece&... pieces) {
  std::ostringstream text;
  text.precision(9);
  (text << ... << pieces);
  return text.str();
}

/// What a step throws: the error, with the numbers that show it. Never the right solution.
struct Wrong {
  std::string text;
};
template <class... Piece> [[noreturn]] void wrong(const Piece&... pieces) {
  throw Wrong{words(pieces...)};
}
template <class... Piece> void expect(bool right, const Piece&... pieces) {
  if (!right) wrong(pieces...);
}

/// Writes down how far an answer gets, line by line. The process that started the program reads it,
/// also where the answer crashes or never ends (tools/labs/lab.py). A line is a word and its text:
///   begin WHAT, ok WHAT WHAT-WAS-SEEN, wrong WHAT TEXT, hint TEXT, with tabs between; done.
class Report {
 public:
  explicit Report(FILE* to) : to_(to) {}

  /// Runs `body` unless an earlier step was wrong. It returns what it has seen and throws Wrong;
  /// any other exception is the answer's. `hint` says where the student should search after a
  /// failure.
  void step(const std::string& what, const std::string& hint,
            const std::function<std::string()>& body);
  bool passed() const { return passed_; }
  void done() { line("done"); }

 private:
  FILE* to_;
  bool passed_ = true;
  void line(const std::string& text);
};

/// main() of a check: grades, and writes the report into the file that the one argument names.
/// Returns 0 where the answer passed, else 1.
int run(int argc, char** argv, const std::function<void(Report&)>& grade);

}  // namespace ramet::labs
