"""Runs packaging/conan/conanfile.py in the order of `conan create`, with this in place of Conan:
conan.py TREE WORK [shared].

The package is then in WORK/package. Meson's command lines are those of Conan 2's Meson helper.
"""

import collections
import fnmatch
import importlib.util
import os
import shutil
import subprocess
import sys
import types

tree, work = sys.argv[1], sys.argv[2]
shared = "shared" in sys.argv[3:]


class Settings:
    os = "Linux"

    def rm_safe(self, name):
        pass


class ConanFile:
    pass


class Meson:
    def __init__(self, recipe):
        self.recipe = recipe

    def run(self, *command):
        subprocess.run(command, check=True)

    def configure(self):
        native = os.path.join(self.recipe.build_folder, "conan_meson_native.ini")
        self.run("meson", "setup", "--native-file", native, self.recipe.build_folder,
                 self.recipe.source_folder, "-Dprefix=/")

    def build(self):
        self.run("meson", "compile", "-C", self.recipe.build_folder)

    def install(self):
        self.run("meson", "install", "-C", self.recipe.build_folder, "--destdir", self.recipe.package_folder)


class MesonToolchain:
    def __init__(self, recipe):
        self.recipe = recipe

    def generate(self):
        kind = "shared" if shared else "static"
        with open(os.path.join(self.recipe.build_folder, "conan_meson_native.ini"), "w") as file:
            file.write("[built-in options]\nbuildtype = 'release'\nlibdir = 'lib'\nincludedir = 'include'\n"
                       "default_library = '%s'\nc_args = []\n" % kind)


class Info:
    def __init__(self):
        self.properties = {}
        self.components = collections.defaultdict(Info)
        self.requires = []

    def set_property(self, name, value):
        self.properties[name] = value


def copy(recipe, pattern, src, dst):
    for folder, _, names in os.walk(src):
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), src)
            if fnmatch.fnmatch(path, pattern):
                os.makedirs(os.path.dirname(os.path.join(dst, path)), exist_ok=True)
                shutil.copy2(os.path.join(src, path), os.path.join(dst, path))


def load(recipe, path):
    with open(path) as file:
        return file.read()


def rmdir(recipe, path):
    shutil.rmtree(path)


def module(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


module("conan", ConanFile=ConanFile)
module("conan.errors", ConanInvalidConfiguration=type("ConanInvalidConfiguration", (Exception,), {}))
module("conan.tools")
module("conan.tools.files", copy=copy, load=load, rmdir=rmdir)
module("conan.tools.layout", basic_layout=lambda recipe, src_folder: None)
module("conan.tools.meson", Meson=Meson, MesonToolchain=MesonToolchain)

sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("conanfile", os.path.join(tree, "packaging", "conan", "conanfile.py"))
conanfile = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conanfile)

recipe = conanfile.TickwheelConan()
recipe.recipe_folder = os.path.join(tree, "packaging", "conan")
recipe.settings = Settings()
recipe.source_folder = recipe.export_sources_folder = os.path.join(work, "sources")
recipe.build_folder = os.path.join(work, "build")
recipe.package_folder = os.path.join(work, "package")
recipe.cpp_info = Info()
for folder in (recipe.source_folder, recipe.build_folder, recipe.package_folder):
    os.makedirs(folder)

for step in ("set_version", "export_sources", "configure", "layout", "validate", "generate", "build", "package",
             "package_info"):
    getattr(recipe, step)()
parts = recipe.cpp_info.components
assert parts["layers"].requires == ["core"]
for library in parts["core"].libs + parts["layers"].libs:
    kind = ".so" if shared else ".a"
    assert os.path.exists(os.path.join(recipe.package_folder, "lib", "lib" + library + kind)), library
assert os.path.exists(os.path.join(recipe.package_folder, "licenses", "LICENSE"))
print("version", recipe.version)
print("libs", *["-l" + library for library in parts["layers"].libs + parts["core"].libs + parts["core"].system_libs])
