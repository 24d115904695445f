#include "core/judge/report.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace retrograd {
namespace {

Report oneOf(Severity severity) {
  Report report{.subject = "my-step", .judged = 2, .due = 2, .unit = "gradient"};
  report.claims.push_back({.severity = severity, .sentence = "it is off", .line = "train.py:3 in step"});
  return report;
}

TEST(Judge, PassesOnlyWhatWasCompared) {
  EXPECT_EQ(decide({.judged = 1}).verdict, Verdict::pass);
  const auto nothing = decide({});
  EXPECT_EQ(nothing.verdict, Verdict::notPossible);
  EXPECT_EQ(nothing.reason, "nothing was compared");
  Report part{.judged = 3, .due = 4};
  part.notJudged.push_back({"h.weight", "its op has no derivative"});
  EXPECT_EQ(decide(part).verdict, Verdict::notPossible);
  EXPECT_EQ(decide(part).reason, "h.weight: its op has no derivative");
}

TEST(Judge, AFaultFailsAndASuspicionWithStrictAlone) {
  const auto fault = oneOf(Severity::fault), suspicion = oneOf(Severity::suspicion), note = oneOf(Severity::note);
  EXPECT_EQ(decide(fault).verdict, Verdict::fail);
  EXPECT_EQ(decide(fault).reason, "it is off; train.py:3 in step");
  EXPECT_EQ(decide(suspicion).verdict, Verdict::pass);
  EXPECT_EQ(decide(suspicion, true).verdict, Verdict::fail);
  EXPECT_EQ(decide(note, true).verdict, Verdict::pass);
}

TEST(Judge, AFaultOutweighsWhatWasNotJudged) {
  auto report = oneOf(Severity::fault);
  report.notJudged.push_back({"3 gradients", "no data"});
  EXPECT_EQ(decide(report).verdict, Verdict::fail);
}

TEST(Judge, ExitCodesOfSeveralAreTheWorst) {
  EXPECT_EQ(worstExitCode({Verdict::pass, Verdict::notPossible}), 2);
  EXPECT_EQ(worstExitCode({Verdict::notPossible, Verdict::fail, Verdict::pass}), 1);
  EXPECT_EQ(worstExitCode({Verdict::pass}), 0);
}

TEST(Judge, TextSaysTheWorstFirstWithWhatToDo) {
  auto report = oneOf(Severity::note);
  report.claims.push_back({.severity = Severity::fault,
                           .sentence = "clipped while scaled",
                           .remedy = "call unscale_ first",
                           .parameters = {"a", "b", "c"}});
  report.due = 4;
  const auto lines = detailLines(report);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0].text, "fault: clipped while scaled; behind it: a, b and 1 more");
  EXPECT_EQ(lines[1].text, "  what to do: call unscale_ first");
  EXPECT_EQ(lines[2].text, "note: it is off; train.py:3 in step");
  EXPECT_EQ(lines[3].text, "judged: 2 of 4 gradients");
  EXPECT_EQ(detailLines(report, true).size(), 2U);
}

TEST(Judge, JsonKeepsAReport) {
  auto report = oneOf(Severity::fault);
  auto& claim = report.claims[0];
  claim.by = Producer::jobBackward;
  claim.measure = Measure{std::numeric_limits<double>::infinity(), 1e-6, 2, "is f32[2], expected f32[3]", 0.5};
  claim.op = BoundSymbolId(7);
  claim.also = {BoundSymbolId(3)};
  report.notJudged.push_back({"x", "y"});
  const auto json = toJson(report, decide(report));
  EXPECT_EQ(json["verdict"], "fail");
  const auto again = reportFromJson(json);
  EXPECT_EQ(toJson(again, decide(again)), json);
  EXPECT_EQ(again.claims[0].op, BoundSymbolId(7));
  EXPECT_THROW(reportFromJson(nlohmann::ordered_json::object()), std::exception);
}

}  // namespace
}  // namespace retrograd
