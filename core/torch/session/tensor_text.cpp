#include "core/torch/session/tensor_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/torch/tracing/convert.h"

namespace retrograd {
namespace {

/// Elements as doubles (complex: pairs), in order.
class Elements {
 public:
  explicit Elements(const TensorData& data)
      : complex_(isComplex(data.meta.dtype)), integral_(!isFloating(data.meta.dtype) && !complex_) {
    auto tensor = borrowTensor(data).contiguous();
    values_ = complex_ ? tensor.to(at::kComplexDouble) : integral_ ? tensor.to(at::kLong) : tensor.to(at::kDouble);
  }

  std::string text(std::int64_t i) const {
    if (integral_) return std::to_string(at<std::int64_t>(i));
    if (!complex_) return fmt::format("{:.6g}", at<double>(i));
    const auto z = at<c10::complex<double>>(i);
    return fmt::format("{:.6g}{:+.6g}j", z.real(), z.imag());
  }

  nlohmann::ordered_json json(std::int64_t i) const {
    if (integral_) return at<std::int64_t>(i);
    if (complex_) return text(i);
    const double x = at<double>(i);
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
    return x;
  }

 private:
  template <class T>
  const T& at(std::int64_t i) const {
    return static_cast<const T*>(values_.const_data_ptr())[i];
  }

  bool complex_, integral_;
  at::Tensor values_;
};

void write(std::string& out, const Elements& elements, const std::vector<std::int64_t>& sizes, std::size_t dim,
           std::int64_t offset, std::int64_t edge) {
  if (dim == sizes.size()) {
    out += elements.text(offset);
    return;
  }
  std::int64_t stride = 1;
  for (auto d = dim + 1; d < sizes.size(); ++d) stride *= sizes[d];
  const bool last = dim + 1 == sizes.size();
  out += '[';
  for (std::int64_t i = 0; i < sizes[dim]; ++i) {
    if (i > 0) out += last ? ", " : ",\n" + std::string(dim + 1, ' ');
    if (sizes[dim] > 2 * edge && i == edge) {
      out += "...";
      i = sizes[dim] - edge - 1;
      continue;
    }
    write(out, elements, sizes, dim + 1, offset + i * stride, edge);
  }
  out += ']';
}

nlohmann::ordered_json nested(const Elements& elements, const std::vector<std::int64_t>& sizes, std::size_t dim,
                              std::int64_t& next) {
  if (dim == sizes.size()) return elements.json(next++);
  auto list = nlohmann::ordered_json::array();
  for (std::int64_t i = 0; i < sizes[dim]; ++i) list.push_back(nested(elements, sizes, dim + 1, next));
  return list;
}

}  // namespace

std::string tensorText(const TensorData& tensor, std::int64_t edge) {
  std::string out;
  write(out, Elements(tensor), tensor.meta.sizes, 0, 0, edge);
  return out;
}

nlohmann::ordered_json tensorJson(const TensorData& tensor) {
  nlohmann::ordered_json json{{"dtype", torchName(tensor.meta.dtype)}, {"sizes", tensor.meta.sizes}};
  constexpr std::int64_t most = 1000;
  if (tensor.meta.elements() > most) {
    json["elements_left_out"] = true;
    return json;
  }
  std::int64_t next = 0;
  json["elements"] = nested(Elements(tensor), tensor.meta.sizes, 0, next);
  return json;
}

}  // namespace retrograd
