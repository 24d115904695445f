#pragma once
#include <optional>
#include <span>

#include "core/formats/model/model_file.h"

namespace retrograd {

/// What a model can be moved to: float64, float32, bfloat16, float16.
std::span<const DType> precisions();

/// The precision that a model is in: that of most elements of its floating parameters and buffers (complex ones count
/// by their parts), of its user inputs where there are none, else float32.
DType ownPrecision(const ModelFile& file);

/// What `dtype` becomes in a model that goes from one precision to another: `to` for `from`, likewise for complex
/// numbers of its kind, else itself. Complex numbers go with LibTorch's own correspondence, in which bfloat16 has
/// complex64.
DType castDType(DType dtype, DType from, DType to);

/// All that a document says of dtypes as if its model had been exported in another precision: metas, and dtype literals
/// of calls. An op that makes such a tensor of nothing (`zeros([3])`) gets the literal. A number that is the old
/// precision's limit (a mask's least number) and too large for the new one becomes the new one's. Whatever the model
/// itself has in another precision stays, such as regions under autocast.
void castDocument(Document& document, DType from, DType to);

/// Relative difference at which two runs are said to part where the user names none: 1e-4, or what is usual between
/// this precision and a wider one.
double usualTolerance(std::optional<DType> precision);

}  // namespace retrograd
