#pragma once
#include <new>
#include <stdexcept>
#include <string>

namespace retrograd {

/// Memory ran short. Not an Error: those say something about a file, an op or a request, and some callers try another
/// way after one. Nobody may do that here, or an answer that lacks a part would look complete. what() reads "place:
/// message".
class OutOfMemory : public std::bad_alloc {
 public:  // NOLINTNEXTLINE(bugprone-throw-keyword-missing): nothing is created here
  explicit OutOfMemory(const std::string& message, const std::string& place = {})
      : text_(place.empty() ? message : place + ": " + message) {}
  const char* what() const noexcept override { return text_.what(); }

 private:
  std::runtime_error text_;  // copies without throwing
};

}  // namespace retrograd
