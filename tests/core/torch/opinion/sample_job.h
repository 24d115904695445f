// Second opinions on the jobs that lie next to the checkout.
#pragma once
#include <filesystem>

#include "core/formats/safetensors/safetensors.h"
#include "core/torch/opinion/second_opinion.h"

namespace retrograd {

/// The job's own weights, batch and reference.
inline SecondOpinionRequest requestOf(const std::filesystem::path& job) {
  SecondOpinionRequest request;
  request.weights = readSafetensors((job / "model.safetensors").string()).tensors;
  request.batch = readSafetensors((job / "batch.safetensors").string()).tensors;
  request.reference = readSafetensors((job / "ref.safetensors").string()).tensors;
  return request;
}

}  // namespace retrograd
