// Reads every model of the collection with LibTorch's schemas.
#include <gtest/gtest.h>

#include <chrono>

#include "core/formats/model/model_file.h"
#include "core/formats/read/read_file.h"
#include "core/torch/tracing/op_table.h"
#include "tests/core/formats/cases.h"

namespace retrograd {
namespace {

TEST(ReadModels, everyCaseIsRead) {
  const auto files = test::filesBelow(test::cases(), ".pt2");
  if (files.empty()) GTEST_SKIP() << "no cases beside this checkout";
  for (const auto& path : files) {
    SCOPED_TRACE(path);
    try {
      const auto file = readModelFile(path, lookupSymbol);
      for (const auto& p : file.problems) {
        EXPECT_NE(p.severity, Problem::Severity::error) << p.place << ": " << p.message;
        if (getenv("SHOW")) printf("%s: %s: %s\n", path.c_str(), p.place.c_str(), p.message.c_str());
      }
      EXPECT_FALSE(file.sampleInputs.empty());
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

}  // namespace
}  // namespace retrograd
