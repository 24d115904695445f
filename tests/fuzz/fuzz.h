#pragma once
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/formats/zip/archive.h"

namespace retrograd::fuzz {

inline ByteRegion regionOf(std::string bytes) {
  auto kept = std::make_shared<std::string>(std::move(bytes));
  return {reinterpret_cast<const std::byte*>(kept->data()), kept->size(), kept};
}

/// A reader may refuse its input with Error(badInput) and in no other way.
template <class Read>
void expectReadOrRefusal(Read&& read) {
  try {
    read();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::badInput) __builtin_trap();
  }
}

}  // namespace retrograd::fuzz
