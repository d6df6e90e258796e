#include "cli/sweep/table_text.hpp"

#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace rubato::cli {

std::string read_from(int descriptor, std::int64_t at) {
    struct stat now {};
    if (::fstat(descriptor, &now) != 0 || now.st_size <= at) return {};
    std::string text(static_cast<std::size_t>(now.st_size - at), '\0');
    std::size_t used = 0;
    while (used < text.size()) {
        const ssize_t count =
            ::pread(descriptor, text.data() + used, text.size() - used, at + static_cast<std::int64_t>(used));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        used += static_cast<std::size_t>(count);
    }
    text.resize(used);
    return text;
}

std::string_view plain_header(std::string_view line) {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (line.starts_with(byte_order_mark)) line.remove_prefix(byte_order_mark.size());
    return without_return(line);
}

std::string plain_table(std::string_view text) {
    std::string out;
    bool header = true;
    const std::size_t whole = each_line(text, [&](std::string_view line) {
        out.append(header ? plain_header(line) : line).append("\n");
        header = false;
    });
    return out.append(without_return(text.substr(whole)));
}

}  // namespace rubato::cli
