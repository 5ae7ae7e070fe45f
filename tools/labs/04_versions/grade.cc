// Checks which objects keep numbers, which ones change them, and whether the keeper notices.
#include <stdexcept>

#include "tools/labs/04_versions/lab.h"

namespace ramet::labs {
namespace {

using Array = VersionsLab::Array;

/// What get() says where it must refuse; Wrong where it does not.
std::string refusal(const std::function<Array()>& get, const std::string& change) {
  try {
    const Array a = get();
    wrong(change, " after it was saved, and get() gave the array back, whose first number is now ",
          a.at(0));
  } catch (const std::runtime_error& e) { return e.what(); }
}

Array allowed(const std::function<Array()>& get, const std::string& why) {
  try {
    return get();
  } catch (const std::runtime_error& e) { wrong(why, ", and get() throws: ", e.what()); }
}

std::string unchanged(const VersionsLab& answer) {
  const Array a = answer.make({1, 2, 3});
  const auto get = a.save();
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) sum += a.at(i);
  const Array back = allowed(get, "the numbers were only read");
  expect(
      back.memory == a.memory,
      "what get() gives back lies in memory of its own: saving a tensor of a gigabyte would take "
      "another gigabyte");
  expect(back.at(2) == 3 && sum == 6, "what get() gives back has other numbers");
  return "the same memory, and no error";
}

std::string changed(const VersionsLab& answer) {
  Array a = answer.make({1, 2, 3});
  const auto get = a.save();
  a.add_(10);
  refusal(get, "10 was added to the array");
  return "get() refuses";
}

std::string changed_before(const VersionsLab& answer) {
  Array a = answer.make({1, 2, 3});
  a.add_(1);
  a.add_(1);
  const auto get = a.save();
  const Array back = allowed(get,
                             "the array was changed twice, then saved, and nobody has changed it "
                             "since");
  expect(back.at(0) == 3, "the first number is ", back.at(0), ", expected 3");
  return "only what comes later counts";
}

std::string views(const VersionsLab& answer) {
  Array a = answer.make({1, 2, 3, 4});
  const auto get = a.save();
  Array v = a.view(1, 2);
  expect(v.at(0) == 2 && v.at(1) == 3, "a.view(1, 2) of 1, 2, 3, 4 begins with ", v.at(0),
         ", expected 2");
  v.view(1, 1).add_(10);  // a view of a view
  refusal(get, "10 was added to a view of a view of the array");
  expect(a.at(2) == 13, "10 was added to a view of the array's third number, which is ", a.at(2),
         " in the array itself, expected 13");

  Array b = answer.make({1, 2, 3, 4});
  const auto get_view = b.view(2, 2).save();
  b.add_(10);
  refusal(get_view, "a view was saved, and 10 was added to the array that it looks into");
  return "both directions";
}

std::string copies(const VersionsLab& answer) {
  Array a = answer.make({1, 2});
  const auto get = a.save();
  a.copy().add_(10);
  answer.make({1, 2}).add_(10);
  allowed(get, "only a copy and another array were changed");
  return "a copy has a version of its own";
}

std::string text(const VersionsLab& answer) {
  Array a = answer.make({1, 2});
  for (int i = 0; i < 41; ++i) a.add_(0.5);
  const auto get = a.save();
  for (int i = 0; i < 5; ++i) a.add_(0.5);
  const std::string said = refusal(get, "0.5 was added five times");
  expect(said.find("41") != std::string::npos && said.find("46") != std::string::npos,
         "saved at version 41 and changed five times, it says \"", said,
         "\", expected both versions in it, 41 and 46");
  return said;
}

}  // namespace

void grade(const VersionsLab& answer, Report& report) {
  const std::string whose = "who counts the changes, and who looks at the count? chapter 4";
  report.step("saved and unchanged", "what is kept is a reference, not a copy: chapter 4",
              [&] { return unchanged(answer); });
  report.step("changed after it was saved", whose, [&] { return changed(answer); });
  report.step("changed before it was saved",
              "what has to be remembered when it is saved? chapter 4",
              [&] { return changed_before(answer); });
  report.step("changed through a view",
              "the count belongs to the memory, not to who looks at it: chapters 4 and 5",
              [&] { return views(answer); });
  report.step("a copy is changed", "only the memory that is shared counts: chapter 4",
              [&] { return copies(answer); });
  report.step("the words of the error", "whoever reads it has to find the change: task.md",
              [&] { return text(answer); });
}

}  // namespace ramet::labs
