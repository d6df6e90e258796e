// What we say about SimGrid XML files: the text of a file and, behind a byte 1e (record separator), what SimGrid
// printed about it. SimGrid itself aborts on what is wrong and lies beyond our reach, so it reads a file in a child
// process first (sim/simgrid/simgrid_trial.hpp); what runs in our own process on untrusted bytes is the search for
// lines and the translation of the log, and that is fuzzed here. The whole, trial included, is what xml_trial.cpp tries
// with altered files.
#include "fuzz/check.hpp"
#include "sim/simgrid/simgrid_messages.hpp"

#include <cstdint>

using namespace rubato;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view all(reinterpret_cast<const char*>(data), size);
    const auto end = all.find('\x1e');
    const sim::PlatformText file{"p.xml", std::string(all.substr(0, end))};
    const std::string_view log = end == all.npos ? std::string_view() : all.substr(end + 1);
    const std::string failure = sim::explain_failure(file, log);
    fuzz::demand(failure.starts_with("p.xml:"), "a failure begins with the file");
    // A log's line may be as long as it likes.
    fuzz::demand(failure.find('\n') == failure.npos, "a failure is one line");
    for (const std::string& warning : sim::explain_warnings(file, log))
        fuzz::demand(warning.starts_with("p.xml:") && warning.find('\n') == warning.npos, "a warning is one line");
    fuzz::demand(file.line_of(log.substr(0, 20)) >= 0, "lines count from 1, and 0 is none");
    return 0;
}
