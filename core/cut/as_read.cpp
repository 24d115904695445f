#include "core/cut/as_read.h"

#include <algorithm>
#include <utility>

#include "core/base/id_vector.h"
#include "core/trace/implied.h"

namespace retrograd {

ModelFile copyOf(const ModelFile& model) {
  auto copy = model;
  copy.document = std::make_shared<Document>(*model.document);
  return copy;
}

ModelFile asRead(const Analysis& whole) {
  auto model = copyOf(whole.file);
  restoreStorages(model);
  return model;
}

/// It follows from the calls: a view lies in its base's memory, everything else in its own.
void restoreStorages(const ModelFile& model) {
  auto& document = *model.document;
  IdVector<StorageId, char> taken(document.storageCount(), 0);
  const auto take = [&](ValueId id) {
    if (const auto storage = document.value(id).storage) taken[storage] = 1;
  };
  for (auto input : model.computation.trace.inputs)
    if (input) take(input);
  for (auto op : model.computation.trace.ops)
    for (std::size_t i = 0; i < document.outputs(op).size(); ++i) {
      const auto output = std::as_const(document).outputs(op)[i];
      if (!output || !document.isTensor(output)) continue;
      auto& value = document.value(output);
      if (const auto base = implied::base(document, op, i)) value.storage = document.value(base).storage;
      else if (!value.storage || taken[value.storage])
        value.storage = document.addStorage(document.meta(value.meta).storageBytes(), output);
      taken.resize(document.storageCount(), 0);
      take(output);
    }
}

bool isUntyped(const ModelFile& model) {
  const auto& document = *model.document;
  const auto lacksType = [&](BoundSymbolId op) {
    const auto& symbol = document.symbol(op);
    const auto outputs = document.outputs(op);
    return symbol.schema.find("Tensor", symbol.schema.rfind("->")) != std::string::npos &&
           std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) { return id && !document.isTensor(id); });
  };
  return model.isText && std::any_of(model.computation.trace.ops.begin(), model.computation.trace.ops.end(), lacksType);
}

}  // namespace retrograd
