#pragma once
#include <cstdint>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>

namespace retrograd {

/// Why a core function failed; the command line maps each to its exit code (badInput and badUse: 2, else 1).
enum class ErrorCode { badInput, badUse, unsupportedOp, unknownOp, needsData, execution, io, cancelled, internal };

std::string_view name(ErrorCode code);

/// The one exception type of core. `place` names the file, the op or the argument; what() reads "place: message".
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string message, std::string place = {});

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& place() const { return place_; }
  /// The same error seen from further out: `outer` is put before the place.
  Error at(std::string_view outer) const;

 private:
  ErrorCode code_;
  std::string message_;
  std::string place_;
};

/// Throws Error of ErrorCode::badInput; who reads the file adds its name to the place.
[[noreturn]] void badInput(std::string message, std::string place = {});
/// Throws Error of ErrorCode::badUse.
[[noreturn]] void badUse(std::string message, std::string place = {});

/// Whether a place names this file already: the file itself, or what is in it.
inline bool isPlaceIn(std::string_view place, std::string_view path) {
  if (path.empty() || !place.starts_with(path)) return false;
  return place.size() == path.size() || path.back() == '/' || place[path.size()] == ':' || place[path.size()] == '/';
}

/// Calls `read`, which reads the file of this name. Its errors name the file, and lack of memory is one of them.
template <class Read>
auto readingFile(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const std::bad_alloc&) {
    badInput("does not fit into memory", path);
  } catch (const Error& e) {
    throw isPlaceIn(e.place(), path) || e.code() == ErrorCode::cancelled ? e : e.at(path);
  }
}

/// What to show a person of any exception: LibTorch appends a C++ backtrace to its messages, which is left out.
std::string messageOf(const std::exception& error);

/// Something a user should know that stops nothing (or, with severity error, that stops a later step).
struct Problem {
  enum class Severity { note, warning, error };
  Severity severity = Severity::note;
  std::string message;
  std::string place;     ///< op name, value name or file; for display
  std::int32_t op = -1;  ///< BoundSymbolId index it belongs to, -1 when none
};

}  // namespace retrograd
