#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/torch/checking/pipeline_check.h"
#include "core/torch/stages/pipeline.h"
#include "tests/core/formats/cases.h"
#include "tests/support/report_text.h"

namespace retrograd::test {

inline CutModel opened(const std::string& path, const CutRequest& request = {}) {
  return openCut(path, request, {}, [](const ModelFile&) { return DerivationRequest(); }, true);
}
inline CutModel openedText(const std::string& text, const CutRequest& request = {}) {
  return opened(writeTemporary("pipeline.txt", text), request);
}
inline Pipeline derived(CutModel cut) {
  return derivePipeline(std::move(cut.model), std::move(cut.whole), std::move(cut.split));
}

inline CutRequest at(std::vector<std::string> points) {
  CutRequest request;
  request.at = std::move(points);
  return request;
}

/// Passes, and says what was compared.
inline Report expectEqual(const std::string& text, const CutRequest& request = {}, const CheckOptions& options = {}) {
  auto report = checkPipeline(writeTemporary("pipeline.txt", text), request, options);
  EXPECT_EQ(test::verdictOf(report), Verdict::pass) << test::textOf(report);
  EXPECT_GT(report.details.at("backward_ops"), 0);
  return report;
}

/// Why the check refuses the model; empty where it does not.
inline std::string refusalOf(const std::string& text, const CutRequest& request = {}) {
  try {
    checkPipeline(writeTemporary("pipeline.txt", text), request, {});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::badUse) << error.what();
    return error.what();
  }
  return {};
}

}  // namespace retrograd::test
