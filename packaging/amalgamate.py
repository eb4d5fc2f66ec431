#!/usr/bin/env python3
"""amalgamate.py DIR SOURCE...: writes the core as one file.

DIR/tickwheel.h is all public headers of the core, DIR/tickwheel.c its sources and their headers,
each once, in the order of their includes. A program compiles tickwheel.c as C11 with
-pthread. It needs no other library.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROLOGUE = """\
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "tickwheel.h"

#ifdef __clang__ /* inline functions of headers of which this file needs a part */
#pragma clang diagnostic ignored "-Wunused-function"
#pragma clang diagnostic ignored "-Wunneeded-internal-declaration"
#endif
"""
INCLUDE = re.compile(r'^#include "([^"]+)"')


def find(name, beside):
    """The file that an include names: from the file's own folder, from include/ or from the top."""
    for folder in (beside, ROOT / "include", ROOT):
        path = folder / name
        if path.is_file():
            return path.resolve()
    sys.exit(f"amalgamate: {name} is not found")


def expand(path, done, out):
    """Writes a file with what it includes. What is in `done` was written before."""
    done.add(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    out.append(f"/* ---- {path.relative_to(ROOT)} ---- */")
    for line in lines:
        include = INCLUDE.match(line)
        if not include:
            out.append(line)
            continue
        included = find(include[1], path.parent)
        if included not in done:
            expand(included, done, out)
    out.append("")


def main():
    folder, sources = pathlib.Path(sys.argv[1]), sys.argv[2:]
    public, done = [], set()
    expand(ROOT / "include/tickwheel.h", done, public)
    private = PROLOGUE.splitlines()
    for source in sources:
        expand((ROOT / source).resolve(), done, private)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in (("tickwheel.h", public), ("tickwheel.c", private)):
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"amalgamate: {folder / name}: {len(lines)} lines")


if __name__ == "__main__":
    main()
