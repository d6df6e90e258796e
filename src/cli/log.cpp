// The only file that sees spdlog.
#include "cli/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace rubato::cli {
namespace {

spdlog::logger& logger() {
    static const auto instance = [] {
        auto made = spdlog::stderr_logger_st("rubato");
        made->set_pattern("rubato: %v");
        made->flush_on(spdlog::level::info);
        return made;
    }();
    return *instance;
}

}  // namespace

void note(const std::string& text) {
    logger().info("note: {}", text);
}

void warn(const std::string& text) {
    logger().warn("warning: {}", text);
}

void insist(const std::string& text) {
    logger().error("warning: {}", text);
}

void error(const std::string& text) {
    logger().error("{}", text);
}

void be_quiet() {
    logger().set_level(spdlog::level::err);
}

}  // namespace rubato::cli
