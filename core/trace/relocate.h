#pragma once
#include "core/trace/document.h"

namespace retrograd {

/// Moves everything that a document describes to one device, as `model.to(device)` and inputs on it would: the device
/// of every tensor on a CPU or a GPU, device literals of calls, the device that autocast regions are for. A factory op
/// that names no device (`zeros([3])`) and reads no tensor gets the literal, unless `device` is the CPU, which is what
/// none means. Tensors on the meta device and on others stay.
void relocate(Document& document, Device device);

/// `cuda` without a number is the first one, as for tensors; anything else stays.
Device withIndex(Device device);

/// The device a computation was moved to: that of the first of `values` that is a tensor off the CPU; the CPU where
/// there is none.
Device deviceOf(const Document& document, const std::vector<ValueId>& values);

}  // namespace retrograd
