#include "core/base/error.h"

#include "core/base/out_of_memory.h"

namespace retrograd {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::badInput: return "bad input";
    case ErrorCode::badUse: return "bad use";
    case ErrorCode::unsupportedOp: return "unsupported op";
    case ErrorCode::unknownOp: return "unknown op";
    case ErrorCode::needsData: return "needs data";
    case ErrorCode::execution: return "execution";
    case ErrorCode::io: return "input/output";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

static std::string sentence(const std::string& place, const std::string& message) {
  return place.empty() ? message : place + ": " + message;
}

Error::Error(ErrorCode code, std::string message, std::string place)
    : std::runtime_error(sentence(place, message)),
      code_(code),
      message_(std::move(message)),
      place_(std::move(place)) {}

Error Error::at(std::string_view outer) const {
  return {code_, message_, place_.empty() ? std::string(outer) : std::string(outer) + ": " + place_};
}

void badInput(std::string message, std::string place) {
  throw Error(ErrorCode::badInput, std::move(message), std::move(place));
}

void badUse(std::string message, std::string place) {
  throw Error(ErrorCode::badUse, std::move(message), std::move(place));
}

std::string messageOf(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) && !dynamic_cast<const OutOfMemory*>(&error))
    return "not enough memory";
  std::string message = error.what();
  if (const auto backtrace = message.find("\nException raised from"); backtrace != std::string::npos)
    message.resize(backtrace);
  return message;
}

}  // namespace retrograd
