#include "core/torch/together/spilled_tensors.h"

#include <ATen/ops/empty.h>
#include <unistd.h>

#include "core/base/error.h"

namespace retrograd {

SpilledTensors::SpilledTensors() : file_(std::tmpfile()) {
  if (!file_) throw Error(ErrorCode::io, "no temporary file can be made");
}

SpilledTensors::Place SpilledTensors::put(const at::Tensor& tensor) {
  const auto dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous();
  const Place place{end_, static_cast<std::int64_t>(dense.nbytes()), dense.sizes().vec(), dense.scalar_type()};
  const auto* data = static_cast<const char*>(dense.const_data_ptr());
  for (std::int64_t done = 0; done < place.bytes;) {
    const auto written = pwrite(fileno(file_.get()), data + done, place.bytes - done, place.offset + done);
    if (written <= 0) throw Error(ErrorCode::io, "a temporary file cannot be written: the disk may be full");
    done += written;
  }
  end_ += place.bytes;
  return place;
}

at::Tensor SpilledTensors::get(const Place& place) const {
  if (!place) return {};
  auto tensor = at::empty(place.sizes, at::TensorOptions().dtype(place.dtype));
  auto* data = static_cast<char*>(tensor.mutable_data_ptr());
  for (std::int64_t done = 0; done < place.bytes;) {
    const auto got = pread(fileno(file_.get()), data + done, place.bytes - done, place.offset + done);
    if (got <= 0) throw Error(ErrorCode::io, "a temporary file cannot be read");
    done += got;
  }
  return tensor;
}

}  // namespace retrograd
