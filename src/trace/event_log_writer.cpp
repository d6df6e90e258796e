#include "trace/event_log_writer.hpp"

#include "trace/event_text.hpp"

namespace rubato::trace {

EventLogWriter::EventLogWriter(const std::string& path, const LogHeader& header, const std::string& state)
    : file_(path) {
    write("H", to_text(header));
    if (!state.empty()) write("S", state);
    file_.flush();
}

void EventLogWriter::write(std::string_view kind, std::string_view body) {
    file_.append(sealed_line(chain_, kind, body));
    ++lines_;
}

void EventLogWriter::step(Time now, RoleId role, const Event& event, const Actions& actions) {
    write("E", std::to_string(now) + ' ' + std::to_string(role) + ' ' + to_text(event));
    each_line(actions, [this](char kind, const std::string& text) { write({&kind, 1}, text); });
}

void EventLogWriter::finish() {
    write("END", std::to_string(lines_));
    file_.close();
}

}  // namespace rubato::trace
