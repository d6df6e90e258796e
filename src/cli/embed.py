"""Writes a C++ file that holds the text of a file as a string: embed.py INPUT OUTPUT FUNCTION."""

import sys

source, target, function = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    text = file.read()
# Pieces below the 64 KiB that the standard asks compilers to take.
pieces = [text[i : i + 8000] for i in range(0, len(text), 8000)]
with open(target, "w", encoding="utf-8") as file:
    file.write("#include <string_view>\n\nnamespace rubato::cli {\n\n")
    file.write(f"std::string_view {function}();\n\nstd::string_view {function}() {{\n    return\n")
    file.writelines(f'        R"__text__({piece})__text__"\n' for piece in pieces)
    file.write("        ;\n}\n\n}  // namespace rubato::cli\n")
