#include "core/torch/session/recorded_hash.h"

#include <vector>

#include "core/formats/recording/recording_hash.h"

namespace retrograd {
namespace {

std::vector<at::Tensor> partsOf(const at::Tensor& tensor) {
  if (tensor.layout() == at::kSparse) return {tensor._indices(), tensor._values()};
  const bool byRows = tensor.layout() == at::kSparseCsr || tensor.layout() == at::kSparseBsr;
  if (byRows) return {tensor.crow_indices(), tensor.col_indices(), tensor.values()};
  return {tensor.ccol_indices(), tensor.row_indices(), tensor.values()};
}

}  // namespace

std::uint64_t recordedHashOf(const at::Tensor& tensor) {
  if (tensor.is_meta()) return 0;
  if (tensor.layout() != at::kStrided) {
    std::uint64_t hash = 0, place = 0;
    for (const auto& part : partsOf(tensor)) hash += recordedHashOf(part) * recordingKey(recordingPartKeys + place++);
    return hash;
  }
  const auto plain = tensor.resolve_conj().resolve_neg().cpu().contiguous();
  return recordingHash({static_cast<const std::byte*>(plain.const_data_ptr()), plain.nbytes()});
}

}  // namespace retrograd
