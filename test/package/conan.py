"""Runs packaging/conan/conanfile.py in the order of `conan create`, with this in place of Conan:
conan.py TREE WORK [shared].

The package is then in WORK/package. Meson's command lines are those of Conan 2's Meson helper.
"""

import collections
import fnmatch
import pathlib
import runpy
import shutil
import subprocess
import sys
from types import SimpleNamespace
from unittest.mock import MagicMock

tree, work = map(pathlib.Path, sys.argv[1:3])
kind, suffix = ("shared", "so") if "shared" in sys.argv[3:] else ("static", "a")
sources, build, package = work / "sources", work / "build", work / "package"
native = build / "conan_meson_native.ini"


class Meson:
    def __init__(self, recipe):
        pass

    def run(self, *command):
        subprocess.run(("meson",) + command, check=True)

    def configure(self):
        self.run("setup", "--native-file", native, build, sources, "-Dprefix=/")

    def build(self):
        self.run("compile", "-C", build)

    def install(self):
        self.run("install", "-C", build, "--destdir", package)


class MesonToolchain:
    def __init__(self, recipe):
        pass

    def generate(self):
        native.write_text("[built-in options]\nbuildtype = 'release'\nlibdir = 'lib'\nincludedir = 'include'\n"
                          f"default_library = '{kind}'\nc_args = []\n")


def copy(recipe, pattern, src, dst):
    for path in pathlib.Path(src).rglob("*"):
        name = path.relative_to(src)
        if path.is_file() and fnmatch.fnmatch(str(name), pattern):
            to = pathlib.Path(dst) / name
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)


sys.modules.update({
    "conan": MagicMock(ConanFile=type("ConanFile", (), {})),
    "conan.errors": MagicMock(),
    "conan.tools.files": MagicMock(copy=copy, load=lambda recipe, path: pathlib.Path(path).read_text(),
                                   rmdir=lambda recipe, path: shutil.rmtree(path)),
    "conan.tools.layout": MagicMock(),
    "conan.tools.meson": MagicMock(Meson=Meson, MesonToolchain=MesonToolchain),
})
folder = tree / "packaging" / "conan"
recipe = runpy.run_path(str(folder / "conanfile.py"))["TickwheelConan"]()
vars(recipe).update(recipe_folder=str(folder), settings=SimpleNamespace(os="Linux", rm_safe=lambda name: None),
                    source_folder=str(sources), export_sources_folder=str(sources), build_folder=str(build),
                    package_folder=str(package),
                    cpp_info=SimpleNamespace(components=collections.defaultdict(MagicMock)))
for made in sources, build, package:
    made.mkdir(parents=True)
for step in ("set_version", "export_sources", "configure", "layout", "validate", "generate", "build", "package",
             "package_info"):
    getattr(recipe, step)()

core, layers = recipe.cpp_info.components["core"], recipe.cpp_info.components["layers"]
assert layers.requires == ["core"]
for library in core.libs + layers.libs:
    assert (package / "lib" / f"lib{library}.{suffix}").exists(), library
assert (package / "licenses" / "LICENSE").exists()
print("version", recipe.version)
print("libs", *["-l" + library for library in layers.libs + core.libs + core.system_libs])
