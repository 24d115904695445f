#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/fuzz/programs/oracle.h"
#include "tests/fuzz/programs/program.h"

namespace retrograd::fuzz {

/// What came of a program in Retrograd.
struct SubjectRun {
  enum class Status { ran, refused, notCut };
  Status status = Status::ran;
  std::string message;  ///< why it was refused, or could not be cut there
  Outcome outcome;
  Cotangents cotangents;  ///< that were used
  int steps = 0;          ///< ops of forward and backward
};

/// Opens the printed program as a file is opened, derives, splits and runs it. `inputs`: contents by input. `size`:
/// what s0 is; 0 where no size is symbolic. Throws whatever escapes from Retrograd other than an Error that refuses.
class Subject {
 public:
  Subject(const Program& program, std::vector<at::Tensor> inputs, std::int64_t size);
  ~Subject();

  SubjectRun plain();
  /// The same with partition, recomputation or order of the program's mode.
  SubjectRun inMode();
  /// In stages, cut as the mode says.
  SubjectRun inStages();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace retrograd::fuzz
