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
///   begin WHAT HINT, ok WHAT WHAT-WAS-SEEN TICKET, wrong WHAT TEXT, with tabs between; done
///   TICKET.
///
/// Tickets are words that the starting process makes up, one for each step that can pass and one
/// for the end. They come on the standard input. grader.cc takes them before the answer's static
/// constructors run, so a report that the answer writes lacks them. Without --tickets they are
/// empty.
class Report {
 public:
  /// Without tickets unless `key` is the first of the words on the standard input.
  Report(FILE* to, const char* key);

  /// Runs `body` unless an earlier step was wrong. It returns what it has seen and throws Wrong;
  /// any other exception is the answer's. `hint` says where the student should search after a
  /// failure, a crash or a time that ran out.
  void step(const std::string& what, const std::string& hint,
            const std::function<std::string()>& body);
  bool passed() const { return passed_; }
  void done();

 private:
  FILE* to_;
  bool passed_ = true, has_key_;
  size_t used_ = 1;  // tickets
  std::string ticket();
  void line(const std::string& text);
};

/// main() of a check: grades, and writes the report into the file that the first argument names.
/// Returns 0 where the answer passed, else 1. `key`: see Report. It is no std::string: a kernel's
/// file would define the functions of that class, and the checker would watch them.
int run(int argc, char** argv, const char* key, const std::function<void(Report&)>& grade);

}  // namespace ramet::labs
