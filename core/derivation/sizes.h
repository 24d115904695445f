#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/formats/model/model_file.h"
#include "core/sizes/size_expression.h"

namespace retrograd {

/// Shapes and numbers of user inputs, by argument name.
struct GivenSizes {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::string, std::int64_t> numbers;
};

/// A condition under which torch.export made the graph: a guard or a runtime assertion on sizes.
struct SizeCondition {
  std::string text;  ///< over the size symbols: "s77 % 4 == 0"
  SizeExpression holds;
};
/// Those that can be understood and that hold for the file's own hints.
std::vector<SizeCondition> sizeConditions(const ModelFile& file);

/// A conditional whose predicate is a condition on sizes, or its negation: as it is for the sizes at hand.
struct SizeBranch {
  BoundSymbolId op;
  SizeCondition condition;
};
std::vector<SizeBranch> branchConditions(const Document& document);

/// The size symbols' values that the given inputs lead to; a symbol they say nothing of keeps its hint. Throws
/// Error(badUse) that names input, dimension, symbol and range: a size that no value of its symbol gives, that is out
/// of the file's range, that contradicts another input, or under which a condition of the file does not hold.
SizeBindings bindSizes(const ModelFile& file, const GivenSizes& given);

/// Sizes, strides, offsets and storages of all values as they are for these values of the symbols, which become the new
/// hints. Anything else than an expression over these symbols stays.
void setSizes(Document& document, const SizeBindings& sizes);
/// One meta so; the expressions stay with it. Throws Error(badInput) for a tensor beyond 2^63 bytes.
TensorMeta metaAt(const TensorMeta& meta, const SizeBindings& sizes);

/// What would flow into an input for other sizes: `declared` is its meta with expressions, `now` that of the tensor at
/// hand for the symbols' `hints`, whose layout is kept. Throws Error(unsupportedOp) where its strides fit no layout.
TensorMeta inputMetaAt(const TensorMeta& declared, const TensorMeta& now, const SizeBindings& hints,
                       const SizeBindings& sizes);

/// "s77 = 4, s27 = 5"
std::string sizesText(const SizeBindings& sizes);
/// "[s77, 8]"
std::string symbolicShape(const TensorMeta& meta);

}  // namespace retrograd
