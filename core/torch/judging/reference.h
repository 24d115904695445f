#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/derivation/analysis.h"

namespace retrograd {

/// What a run should give. Keys: outputs by user output position ("0"), gradients and mutations by name.
struct Expected {
  TensorMap outputs, inputGradients, parameterGradients, bufferMutations, inputMutations;
  TensorMap prefixed, named;  ///< as the file names them: grad.p.NAME and grad.NAME; parameterGradients has both
};

/// A reference file: inputs and cotangents of a run of PyTorch's eager autograd with what came of them. Complex tensors
/// are stored as `view_as_real`. A step of a training job may also be written as `loss` and grad.NAME of its
/// parameters.
struct Reference {
  std::string path;
  TensorMap inputs;                  ///< in.NAME
  TensorMap cotangents;              ///< cot.N, by user output position
  Expected expected;                 ///< out.N, grad.in.NAME, grad.p.NAME, mut.b.NAME, mut.in.NAME
  std::optional<Expected> inDouble;  ///< the same under f64/, where the file has it
  std::optional<TensorData>
      loss;  ///< loss, where the reference names it instead of numbering outputs; placeLoss() puts it among them
  std::optional<std::uint64_t> seed;
  bool hasNoGradients = false;  ///< PyTorch computed none, as where its backward raised: a missing one says nothing
  bool drawnOnGpu = false;      ///< generator.cuda.N is there: the run was on a GPU, and drew there
  std::optional<std::vector<std::string>>
      requiresGrad;  ///< user inputs that were differentiated; absent: those with a gradient
};

/// Settles what the names of gradients mean where a submodule is called `p` or `in`: grad.p.w is the gradient of w, or
/// of p.w. A name means what the model has; where it has both, what most of the file's names mean, and as a tie grad.p.
/// and grad.in. are prefixes.
void settleNames(Reference& reference, const ModelFile& file);

/// Settles the names, and puts a reference's loss at the position of the file's loss output: the only one, else the one
/// at the path "loss", else the only floating scalar. Its gradient of 1 becomes the only cotangent. No loss is placed
/// where the reference has none. Throws Error(badUse) where it is not known which output is meant.
void placeLoss(Reference& reference, const ModelFile& file);

/// Whether it was written by a run of gradients of gradients of `file`, into which cotangents flow as inputs do.
bool isOfHigherOrder(const Reference& reference, const ModelFile& file);

/// Reads a safetensors file; a tensor whose name has no known prefix counts as an input. Throws Error(badUse) where
/// there is no such file, else as readSafetensors.
Reference readReference(const std::string& path);

/// What to analyse `file` with so that it runs as the reference did: inputs, cotangents, seed, differentiated inputs.
/// Throws Error(badInput) for a cotangent of no output.
DerivationRequest requestFor(const Reference& reference, const ModelFile& file);

/// Position among the computation's outputs of each user output, in order.
std::vector<std::size_t> userOutputs(const Computation& computation);

}  // namespace retrograd
