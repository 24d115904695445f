#pragma once
#include <string>
#include <vector>

#include "core/formats/fx/fx_graph.h"
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

/// Whether a graph has float32 convolutions on a GPU. PyTorch lets cuDNN round their operands to TF32's 11 bits by
/// default (torch.backends.cudnn.allow_tf32), so that loss and gradients of the job are those of other operands.
bool convolvesInTf32(const fx::Graph& graph);

/// Compares job and derived backward with the reference, and says which of the three parts from the others. With `tf32`
/// each tensor may be off by what TF32 rounds away, relative to its largest element.
void compareWithReference(const TensorMap& reference, const std::vector<Compared>& compared, Judge& judge, bool tf32,
                          SecondOpinion& opinion);

}  // namespace retrograd
