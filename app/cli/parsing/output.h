#pragma once
#include <string>
#include <string_view>

#include "app/cli/parsing/parser.h"

namespace retrograd::cli {

/// Adds an option that names a file to write. `ownSession`: it may be the session that is read, which is then saved in
/// its own place.
Option addOutput(Parser parser, const std::string& names, std::string& path, const std::string& help,
                 bool ownSession = false);

/// A name that an option had before: still read, and shown nowhere.
void addOldOutput(Parser parser, const std::string& names, std::string& path);

/// Throws Error(badUse) where an output of the command that was called is also one of its other files, under the same
/// or another name, and Error(io) where no file can be made in an output's folder: said before the work, not after it.
void requireOtherFiles(Parser parser);

/// Writes a text to a file that appears whole, or to standard output where that is `-` or /dev/stdout. Throws
/// Error(io), Error(badUse).
void writeText(const std::string& path, std::string_view text);

/// Makes standard input, output and error exist and their failures visible: a descriptor that is closed fails instead
/// of going to the next file that is opened, a closed pipe and a file that is too large are errors of the write and no
/// signals.
void prepareStandardStreams();
/// From here on it does not matter that nobody reads standard output any more: whoever did has seen enough, as `| head`
/// has. The process then ends without a word, by SIGPIPE.
void letReaderLeave();
/// Hands on what was printed. Throws Error(io) naming standard output where it could not be written.
void flushOutput();

}  // namespace retrograd::cli
