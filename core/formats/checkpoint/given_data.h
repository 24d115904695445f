#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace retrograd {

/// Weights and a batch that take the place of what a model's file holds, and which graph of a log they are for.
struct GivenData {
  std::string weights;   ///< a checkpoint (checkpoint.h); empty: the file's own
  std::string under;     ///< the dictionary in it that holds the weights; empty: the one that fits best
  std::string batch;     ///< a file with user inputs: .safetensors, or what torch.save wrote of a dictionary, list or
                         ///< tuple; empty: none
  bool partial = false;  ///< go on with what fits
  bool ofWhole = false;  ///< the model is a part of the one the data are of: what it does not want is left alone

  /// Of a log of torch.compile: "0/0", "0/0_1" for an attempt; empty: the first compile with a forward and a backward.
  std::string compile;
  std::optional<std::int64_t> rank;  ///< of logs of several ranks; absent: the first that has the compile

  bool empty() const { return weights.empty() && batch.empty() && compile.empty() && !rank; }
  bool operator==(const GivenData&) const = default;
};

}  // namespace retrograd
