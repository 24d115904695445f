#pragma once
// Small programs in the text form, against eager LibTorch.
#include <gtest/gtest.h>

#include <string>

#include "tests/fuzz/programs/read_program.h"
#include "tests/fuzz/programs/trial.h"

namespace retrograd {

inline fuzz::Verdict verdictOf(const std::string& text, const fuzz::Mode& mode = {}, std::uint64_t seed = 1) {
  return fuzz::tryProgram(fuzz::readProgram(text, seed, mode));
}

/// Outputs, gradients, written memory and the generator's state are eager's.
inline void expectAsEager(const std::string& text, const fuzz::Mode& mode = {}, std::uint64_t seed = 1) {
  const auto verdict = verdictOf(text, mode, seed);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::same)
      << verdict.where << ": " << fuzz::name(verdict.kind) << ": " << verdict.message;
}

inline void expectRefused(const std::string& text, const fuzz::Mode& mode = {}) {
  const auto verdict = verdictOf(text, mode);
  EXPECT_EQ(verdict.kind, fuzz::Verdict::Kind::refused) << verdict.message;
}

/// In this order of derivatives.
inline fuzz::Mode ofOrder(int order) {
  fuzz::Mode mode;
  mode.order = order;
  return mode;
}

}  // namespace retrograd
