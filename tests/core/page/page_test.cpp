#include "core/page/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/page/html.h"
#include "core/page/sections.h"
#include "tests/core/export/sample.h"

namespace retrograd::test {
namespace {

Page samplePage(const Analysis& analysis) {
  Page page;
  page.title = "<b>odd</b> & \"so\".pt2";
  page.kind = "model";
  page.analysis = &analysis;
  page.report.unit = "gradient";
  page.report.judged = page.report.due = 2;
  Claim claim;
  claim.by = Producer::derivative;
  claim.kind = "cut-function";
  claim.sentence = "`Square`: <i>0.5</i> times";
  claim.remedy = "correct its backward";
  claim.line = "train.py:12 in backward";
  claim.op = analysis.joint.ops[2];
  page.report.claims.push_back(claim);
  page.decision = decide(page.report);
  return page;
}

nlohmann::json dataOf(const std::string& text) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const auto at = text.find(begin) + begin.size();
  return nlohmann::json::parse(text.substr(at, text.find("</script>", at) - at));
}

TEST(Page, SaysVerdictFindingLineAndRemedyWithoutAScript) {
  const auto analysis = sampleAnalysis();
  const auto text = pageText(samplePage(analysis));
  for (const char* part : {"<header class=\"verdict fail\">", ">Fail</p>", "`Square`: &lt;i&gt;0.5&lt;/i&gt; times",
                           "train.py:12 in backward", "correct its backward", "2 gradients"})
    EXPECT_NE(text.find(part), std::string::npos) << part;
  EXPECT_NE(text.find("href=\"#op" + std::to_string(analysis.joint.ops[2].index) + "\""), std::string::npos);
}

TEST(Page, WhatAFileHoldsIsTextAndNothingIsLoaded) {
  const auto analysis = sampleAnalysis();
  const auto text = pageText(samplePage(analysis));
  EXPECT_EQ(text.find("<b>odd"), std::string::npos);
  EXPECT_EQ(text.find("<1>"), std::string::npos);
  for (const char* none : {"src=", "url(", "http://", "https://", "@import", "unsafe-inline", "onclick=", " style="})
    EXPECT_EQ(text.find(none), std::string::npos) << none;
  EXPECT_NE(text.find("default-src 'none'; style-src " + allowedContent(pageStyle()) + "; script-src " +
                      allowedContent(pageScript())),
            std::string::npos);
  EXPECT_NE(text.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(Page, HashesAreThoseOfSha256) {
  EXPECT_EQ(allowedContent("abc"), "'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0='");
  EXPECT_EQ(allowedContent(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
  EXPECT_EQ(allowedContent(std::string(1000, 'a')), "'sha256-Qe3s5C1j6Nm/UVqbppMuHCDLyfWl0TRkWttdsblzfqM='");
}

TEST(Page, DataLeadsFromABackwardOpToItsOriginAndItsValues) {
  const auto analysis = sampleAnalysis();
  const auto data = dataOf(pageText(samplePage(analysis)));
  const auto& backward = data["sides"][1];
  ASSERT_EQ(backward.size(), analysis.backward.ops.size());
  const auto threshold = analysis.joint.ops[2], relu = analysis.joint.ops[1];
  EXPECT_EQ(backward[0][0], threshold.index);
  EXPECT_EQ(backward[0][6], relu.index);
  for (const auto& side : data["sides"])
    for (const auto& op : side)
      for (const auto& numbers : {op[7], op[8]})
        for (const auto& number : numbers) EXPECT_LT(number.get<std::size_t>(), data["values"].size());
  const auto count = static_cast<std::int64_t>(data["values"].size());
  for (const auto& value : data["values"]) EXPECT_LT(value[3].get<std::int64_t>(), count);
}

TEST(Page, NumbersOfARunAreShownBesideTheirNeighbours) {
  const auto analysis = sampleAnalysis();
  RunRecord record;
  record.values.resize(analysis.document->valueCount());
  for (const auto id : record.values.ids()) record.values[id] = {true, {.elements = 2, .min = -1.5, .norm = 2.5}};
  const auto made = analysis.document->outputs(analysis.joint.ops[2])[0];
  record.values[made].statistics.nan = 1;
  auto page = samplePage(analysis);
  page.values = &record;
  const auto text = pageText(page);
  EXPECT_NE(text.find("Its values and their neighbours"), std::string::npos);
  EXPECT_NE(text.find("<tr class=\"bad\"><th scope=\"row\"><code>" + analysis.document->displayName(made)),
            std::string::npos);
}

TEST(Page, ATimelineHasForwardBackwardAndMarks) {
  const auto analysis = sampleAnalysis();
  const auto html = timelineSection(samplePage(analysis));
  for (const char* part : {"class=\"lane forward\"", "class=\"lane backward\"", "class=\"mark fault\""})
    EXPECT_NE(html.find(part), std::string::npos) << part;
}

TEST(Page, WithoutADerivationTheComputationIsListed) {
  auto analysis = sampleAnalysis();
  analysis.joint = analysis.forward = analysis.backward = {};
  auto page = samplePage(analysis);
  page.report.claims.clear();
  page.report.notJudged.push_back({"", "an op has no derivative"});
  page.decision = decide(page.report);
  const auto text = pageText(page);
  EXPECT_NE(text.find("Not possible"), std::string::npos);
  EXPECT_EQ(dataOf(text)["sides"][0].size(), analysis.computation().trace.ops.size());
}

}  // namespace
}  // namespace retrograd::test
