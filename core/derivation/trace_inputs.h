#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/argument.h"
#include "core/trace/tensor_data.h"

namespace retrograd {

/// The shape of an input that is drawn.
struct InputShape {
  std::vector<std::int64_t> sizes;
  std::optional<DType> dtype;  ///< absent: the file's, else float32
};

/// What a program that comes without inputs is run on. By the flat name of the input: "x"; "xs.0" in a list or tuple;
/// "batch.ids" in a dict or named tuple.
struct TraceInputs {
  TensorMap tensors;                         ///< as given; names of no input are ignored
  std::map<std::string, Argument> numbers;   ///< inputs that are numbers, truths or texts
  std::map<std::string, InputShape> shapes;  ///< drawn from the seed in this shape
  std::uint64_t seed = 0;                    ///< for what is drawn and for random ops
  std::string source = "given";              ///< for people: where `tensors` and `numbers` come from
};

}  // namespace retrograd
