#pragma once
#include <functional>
#include <vector>

#include "core/formats/model/model_file.h"
#include "core/sizes/size_expression.h"
#include "core/torch/grad/transform.h"

namespace retrograd {

/// The joint of a model for other sizes, in a document of its own.
struct SizedJoint {
  Document document;
  JointResult result;
};
/// Throws Error where the model cannot be derived for these sizes.
using DeriveAt = std::function<SizedJoint(const SizeBindings&)>;

/// Writes the sizes, strides, offsets and literal integers of a joint as expressions over the file's size symbols.
/// Rules are derived for numbers, so the joint is derived for some further sizes too, op is set against op, and a
/// number that differs becomes the expression that holds at all of them. A number for which none is found stays a
/// number; it and every op that LibTorch traces differently for other sizes are named in the notes that come back. Ids,
/// ops and their order stay as they are.
std::vector<Problem> expressSizes(const ModelFile& file, JointResult& joint, const DeriveAt& deriveAt);

}  // namespace retrograd
