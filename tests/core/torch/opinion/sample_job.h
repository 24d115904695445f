// Second opinions on the jobs that lie next to the checkout.
#pragma once
#include <algorithm>
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

inline Verdict verdictOf(const SecondOpinion& opinion) { return decide(opinion.report).verdict; }
inline std::string reasonOf(const SecondOpinion& opinion) { return decide(opinion.report).reason; }
/// Of the first fault.
inline const Claim& faultOf(const SecondOpinion& opinion) { return *decide(opinion.report).claim; }
/// How many claims a reference made on the job's own loss and gradients.
inline std::size_t referenced(const SecondOpinion& opinion) {
  return static_cast<std::size_t>(std::ranges::count_if(opinion.report.claims, [](const Claim& claim) {
    return claim.by == Producer::reference && claim.kind == "tensor";
  }));
}

}  // namespace retrograd
