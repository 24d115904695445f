#pragma once
#include <string>

#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

/// What became of a program.
struct Verdict {
  enum class Kind { same, skipped, refused, notCut, different, failed };
  Kind kind = Kind::same;
  std::string where;    ///< "plain", "min-cut", "recompute all", "order 2", "stages", "s0 = 5"
  std::string message;  ///< why eager or Retrograd refused it, or what differs
  int steps = 0;        ///< ops of Retrograd's forward and backward, of the plain run
  int noisy = 0;        ///< tensors that are noise in eager itself, and were not compared
  double subjectSeconds = 0, oracleSeconds = 0;

  bool isFinding() const { return kind == Kind::different || kind == Kind::failed; }
};
std::string name(Verdict::Kind kind);

/// Runs the program in Retrograd and eagerly, plainly and in its mode, and compares. `failed`: something other than a
/// refusal escaped.
Verdict tryProgram(const Program& program);

/// A message with names and numbers left out, so that alike ones are alike.
std::string familyOf(const std::string& message);

}  // namespace retrograd::fuzz
