#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace retrograd {

/// Memory that a line of Inductor's code takes.
struct CodeBuffer {
  std::int32_t line = 0;  ///< from 1
  std::string op;         ///< of ATen, whose kernel writes it first: "aten.addmm"; empty where the code does not say
  std::vector<std::size_t> outputs;  ///< which results of the function are in it
  bool isReused = false;             ///< other values were in it before
};

/// The code that Inductor writes for one graph, as far as it says what is in the memory that it takes: its function
/// returns the results of the graph in their order.
struct OutputCode {
  std::vector<CodeBuffer> buffers;  ///< in the order of the lines
  std::size_t outputCount = 0;
};

/// Reads the wrapper's `call` by the forms of its lines, as PyTorch 2.6 to 2.15 writes them; what it does not know it
/// leaves out.
OutputCode readOutputCode(std::string_view text);

}  // namespace retrograd
