#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/formats/fx/fx_graph.h"
#include "core/torch/opinion/derived_forward.h"
#include "core/torch/opinion/job_run.h"
#include "core/torch/opinion/second_opinion.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// What is compared with a reference: the job as it ran, and what was derived of it.
struct ReferenceSides {
  const JobGraphs& graphs;
  DerivedForward& derived;
  const JobRun& job;
  const TensorMap& weights;           ///< of the job, by all of their names
  bool drawsBetween = false;          ///< an input of the forward comes from eager code and is drawn
  std::vector<std::string> unfilled;  ///< results of opaque ops that nobody gave
};

/// Whether a graph has float32 convolutions on a GPU. PyTorch lets cuDNN round their operands to TF32's 11 bits by
/// default (torch.backends.cudnn.allow_tf32), so that loss and gradients of the job are those of other operands.
bool convolvesInTf32(const fx::Graph& graph);

/// Compares job and derived backward with the reference, and says which of the three parts from the others. Where TF32
/// rounds operands, each tensor may be off by what that takes away, relative to its largest element. What of the
/// reference cannot be compared was not judged.
void compareWithReference(const TensorMap& reference, const ReferenceSides& sides, SecondOpinion& opinion);

/// The other names under which the weights hold the tensor of this name, in the Python program's words ("head.weight"):
/// the same memory, or the same bits, as a file has them that writes each name by itself. Elements that are all alike
/// tie nothing: many parameters begin with ones or zeros.
std::vector<std::string> tiedNames(const TensorMap& weights, std::string_view name);

}  // namespace retrograd
