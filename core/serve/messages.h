#pragma once
// Messages of JSON-RPC 2.0 over a pipe, one a line, as Model Context Protocol has them on standard input and output.
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/base/progress.h"

namespace retrograd {

/// A message of this size is a mistake or an attack: it ends the connection.
inline constexpr std::size_t mostMessageBytes = std::size_t{4} << 20;

/// Lines that come in.
class MessageReader {
 public:
  /// `progress` is asked, while nothing comes, whether to go on.
  explicit MessageReader(int descriptor, const Progress& progress = {})
      : descriptor_(descriptor), progress_(progress) {}
  /// The next line without its end; nullopt at the end of the input. Throws Error(badInput) for a line beyond
  /// mostMessageBytes and for one that the input ends in the middle of, Error(io) where it cannot be read,
  /// Error(cancelled).
  std::optional<std::string> next();

 private:
  bool fill();
  int descriptor_;
  Progress progress_;
  std::string pending_;
};

/// Where answers go: what was standard output. While it lives, whatever prints to standard output prints to standard
/// error, so that nothing gets between the messages.
class MessageWriter {
 public:
  MessageWriter();
  ~MessageWriter();
  MessageWriter(const MessageWriter&) = delete;
  MessageWriter& operator=(const MessageWriter&) = delete;
  /// Throws Error(io) where nobody reads any more.
  void write(const nlohmann::ordered_json& message);

 private:
  int descriptor_;
};

/// A message that came in, as JSON. Throws Error(badInput) for what is none, or nests deeper than any request does.
nlohmann::ordered_json parseMessage(const std::string& line);

}  // namespace retrograd
