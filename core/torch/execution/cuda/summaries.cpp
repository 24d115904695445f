#include "core/torch/execution/cuda/summaries.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/torch/execution/cuda/summary.h"

namespace retrograd::cuda {
namespace {

Kernel kernelFor(Gpu& gpu, const char* what, std::int32_t dtype) {
  return gpu.kernel(what + std::string(shortName(static_cast<DType>(dtype))));
}

Layout layoutFor(const Tensor& tensor, const Kernel& kernel) {
  Layout layout{};
  withElement(static_cast<DType>(tensor.dtype), [&](auto element) {
    layout = layoutOf<decltype(element)>(tensor, std::min(kernel.resident, mostBlocks));
  });
  return layout;
}

}  // namespace

std::optional<Tensor> tensorOf(const Footprint& footprint) {
  Tensor tensor{};
  tensor.data = footprint.data;
  tensor.elements = footprint.elements;
  tensor.dtype = static_cast<std::int32_t>(footprint.dtype);
  tensor.contiguous = footprint.dims.size() == 1 && footprint.dims[0].stride == 1;
  if (tensor.contiguous) return tensor;
  if (footprint.dims.size() > maximumDims) return std::nullopt;
  tensor.dims = static_cast<std::int32_t>(footprint.dims.size());
  for (std::size_t d = 0; d < footprint.dims.size(); ++d) {
    tensor.sizes[d] = footprint.dims[d].size;
    tensor.strides[d] = footprint.dims[d].stride;
  }
  return tensor;
}

TensorStatistics toStatistics(const Summary& summary, std::int64_t copies) {
  TensorStatistics s;
  const auto times = static_cast<double>(copies);
  s.elements = (summary.finite + summary.infinite + summary.nan) * copies;
  s.zeros = summary.zeros * copies;
  s.subnormal = summary.subnormal * copies;
  s.inf = summary.infinite * copies;
  s.nan = summary.nan * copies;
  s.min = summary.least;
  s.max = summary.greatest;
  s.mean = summary.mean;
  const auto finite = static_cast<double>(summary.finite * copies);
  s.standardDeviation = finite > 1 ? std::sqrt(summary.squares * times / (finite - 1)) : 0;
  s.norm = std::sqrt(summary.norm * times);
  s.norm1 = summary.absolutes * times;
  return s;
}

std::string magnitudeText(int cell) {
  if (cell == zeroCell) return "zero";
  if (cell == subnormalCell) return "subnormal";
  if (cell == infinityCell) return "Inf";
  if (cell == nanCell) return "NaN";
  return "2^" + std::to_string(cell - firstOctaveCell + leastExponent);
}

Summaries::Summaries(Gpu& gpu, std::size_t capacity)
    : gpu_(gpu), capacity_(capacity), memory_(gpu.allocate(sizeof(Scratch) + capacity * sizeof(Summary))) {
  gpu_.clear(memory_, sizeof(Scratch));
}

std::size_t Summaries::add(const Tensor& tensor) {
  if (isFull()) throw Error(ErrorCode::internal, "more values than there is room for");
  waiting_.push_back({tensor, used_});
  return used_++;
}

void Summaries::launch() {
  std::ranges::sort(waiting_, [](const Waiting& a, const Waiting& b) {
    return std::pair(a.tensor.dtype, a.place) < std::pair(b.tensor.dtype, b.place);
  });
  for (std::size_t begin = 0; begin < waiting_.size();) {
    const auto kernel = kernelFor(gpu_, "summarise_", waiting_[begin].tensor.dtype);
    Tasks tasks{};
    int rows = 0, columns = 1;
    for (; begin < waiting_.size() && rows < mostTasks; ++begin, ++rows) {
      const auto& [tensor, place] = waiting_[begin];
      if (rows > 0 && tensor.dtype != tasks.tasks[0].tensor.dtype) break;
      const auto address = memory_.address() + sizeof(Scratch) + place * sizeof(Summary);
      tasks.tasks[rows] = {tensor, layoutFor(tensor, kernel), reinterpret_cast<Summary*>(address)};
      columns = std::max(columns, tasks.tasks[rows].layout.blocks);
    }
    auto scratch = memory_.address();
    void* parameters[]{&tasks, &scratch};
    gpu_.launch(kernel, columns, rows, parameters);
  }
  waiting_.clear();
}

std::vector<Summary> Summaries::take() {
  launch();
  std::vector<Summary> summaries(used_);
  if (used_ > 0) gpu_.copyToHost(summaries.data(), memory_, used_ * sizeof(Summary), sizeof(Scratch));
  used_ = 0;
  return summaries;
}

Counts::Counts(Gpu& gpu) : gpu_(gpu), memory_(gpu.allocate(mostCells * sizeof(std::int64_t))) {}

std::vector<std::int64_t> Counts::take(int count) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(count));
  gpu_.copyToHost(counts.data(), memory_, counts.size() * sizeof(std::int64_t));
  return counts;
}

std::vector<std::int64_t> Counts::magnitudes(const Tensor& tensor) {
  const auto kernel = kernelFor(gpu_, "magnitudes_", tensor.dtype);
  auto layout = layoutFor(tensor, kernel);
  auto argument = tensor;
  auto counts = memory_.address();
  gpu_.clear(memory_, magnitudeCells * sizeof(std::int64_t));
  void* parameters[]{&argument, &layout, &counts};
  gpu_.launch(kernel, layout.blocks, 1, parameters);
  return take(magnitudeCells);
}

std::vector<std::int64_t> Counts::histogram(const Tensor& tensor, const LinearCells& cells) {
  if (cells.cells < 1 || cells.cells > mostCells)
    throw Error(ErrorCode::badUse, "a histogram on a GPU has 1 to " + std::to_string(mostCells) + " cells");
  const auto kernel = kernelFor(gpu_, "histogram_", tensor.dtype);
  auto layout = layoutFor(tensor, kernel);
  auto argument = tensor;
  auto edges = cells;
  int columns = 1;  // of counters, so that lanes do not queue up
  while (columns < warp && cells.cells * columns * 2 <= mostCells) columns *= 2;
  auto counts = memory_.address();
  gpu_.clear(memory_, static_cast<std::size_t>(cells.cells) * sizeof(std::int64_t));
  void* parameters[]{&argument, &layout, &edges, &columns, &counts};
  gpu_.launch(kernel, layout.blocks, 1, parameters);
  return take(cells.cells);
}

}  // namespace retrograd::cuda
