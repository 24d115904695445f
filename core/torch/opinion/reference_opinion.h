#pragma once
#include <string>
#include <vector>

#include "core/torch/checking/judge.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd {

/// What is compared with a reference: by name of the reference ("loss", "grad.w") the name that the judge has for it
/// and the tensors that the job and the derived backward gave; null where they gave none.
struct Compared {
  std::string name, judged;
  const TensorData* job = nullptr;
  const TensorData* derived = nullptr;
};

/// Compares job and derived backward with the reference, and says which of the three parts from the others.
void compareWithReference(const TensorMap& reference, const std::vector<Compared>& compared, Judge& judge,
                          SecondOpinion& opinion);

}  // namespace retrograd
