// The lines of events.log: KIND CHECKSUM BODY.
//
//     H 8c1f... 1 samples=60000 parameters=0 lambda=4 scenario=smoke      once, first
//     S 5c20... server{now_ns=...} books[...]                            of a run that goes on: what roles are made of
//     E 03d9... 1250000 3 taken id=2 started_ns=1200000                  an event: time (ns), role, text
//     A 77a0... compute id=3 weights=1 batch{...} worker_seq=1           what the role asked for, in order
//     R 5b1e... gradient-row seq=0 worker=2 ...                          the rows that it stated
//     END 1f0c... 912                                                    once, last: lines before this one
//
// A checksum covers the line and the checksum before it, so a line that was altered, left out, put in or moved shows.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rubato::trace {

inline constexpr int event_log_version = 2;

/// The first line.
struct LogHeader {
    int version = event_log_version;
    std::int64_t samples = 0;     ///< training samples of one epoch
    std::int64_t parameters = 0;  ///< elements of weights and gradients
    std::int64_t lambda = 0;      ///< workers
    /// Sizes of the model's layers, where the servers are split by them; otherwise empty, and not written.
    std::vector<std::int64_t> layers = {};
    std::string scenario;  ///< name
    bool operator==(const LogHeader&) const = default;
};

std::string to_text(const LogHeader& header);
/// Inverse of to_text. Throws std::invalid_argument with what was expected.
LogHeader header_from_text(std::string_view text);

/// The file begins as no log of events does.
struct NotALog : std::invalid_argument {
    using std::invalid_argument::invalid_argument;
};

/// What make_roles needs to replay the log. Throws NotALog where this is none, std::invalid_argument (one line) where
/// its first line was altered or its version is another.
LogHeader read_header(std::istream& log);

/// The state of the roles where the log begins, as text, from a log at its beginning; empty where it begins with the
/// run. Throws std::invalid_argument where that line was altered.
std::string read_state(std::istream& log);

/// 64-bit FNV-1a over the checksum before and the line without its own. It guards against slips, not against forgers.
class ChecksumChain {
public:
    /// The checksum of the next line, as 16 digits; moves on.
    std::string next(std::string_view kind, std::string_view body);

private:
    std::uint64_t state_ = 0xcbf29ce484222325;
};

/// A line with its checksum, without its newline; moves the chain on.
std::string sealed_line(ChecksumChain& chain, std::string_view kind, std::string_view body);

/// A line taken apart; the parts are empty where it has too few of them.
struct LogLine {
    std::string_view kind, checksum, body;
};
LogLine split_line(std::string_view line);

/// Cuts the word before the next space, and that space, off `text`.
std::string_view cut_word(std::string_view& text);

}  // namespace rubato::trace
