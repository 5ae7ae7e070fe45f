// How LibTorch prints standard containers: "1 2 3", "(a, 1) (b, 2)". The operators are in std, as
// in LibTorch, so that every namespace finds them. A program's own operator for a std::vector<T> is
// more special than these, and is taken in any order of declarations.
#pragma once
#include <map>
#include <ostream>
#include <set>
#include <utility>
#include <vector>

#include "ramet/compat/macros.h"

namespace std {
template <class... Types> ostream& operator<<(ostream& out, const vector<Types...>& list);
template <class... Types> ostream& operator<<(ostream& out, const map<Types...>& list);
template <class... Types> ostream& operator<<(ostream& out, const set<Types...>& list);
template <class First, class Second>
ostream& operator<<(ostream& out, const pair<First, Second>& p);
}  // namespace std

namespace c10 {
/// The elements with blanks between them; of more than 100 the first hundred and " ...".
template <class Iterator> void PrintSequence(std::ostream& out, Iterator begin, Iterator end) {
  const ::ramet::detail::ClassicScope classic(out);
  for (int i = 0; begin != end && i < 100; ++i, ++begin) out << (i > 0 ? " " : "") << *begin;
  if (begin != end) out << " ...";
}
}  // namespace c10

namespace std {
template <class... Types> ostream& operator<<(ostream& out, const vector<Types...>& list) {
  c10::PrintSequence(out, list.begin(), list.end());
  return out;
}
template <class... Types> ostream& operator<<(ostream& out, const map<Types...>& list) {
  c10::PrintSequence(out, list.begin(), list.end());
  return out;
}
template <class... Types> ostream& operator<<(ostream& out, const set<Types...>& list) {
  c10::PrintSequence(out, list.begin(), list.end());
  return out;
}
template <class First, class Second>
ostream& operator<<(ostream& out, const pair<First, Second>& p) {
  const ::ramet::detail::ClassicScope classic(out);
  return out << '(' << p.first << ", " << p.second << ')';
}
}  // namespace std
