"""Conan 2 recipe, run in the tree it lies in: conan create packaging/conan"""

import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.files import copy, load, rmdir
from conan.tools.layout import basic_layout
from conan.tools.meson import Meson, MesonToolchain


class TickwheelConan(ConanFile):
    name = "tickwheel"
    description = "Timer service for multithreaded programs"
    license = "BSD-2-Clause"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    # What the build needs of the tree, which is two folders up.
    tree = ("meson.build", "meson_options.txt", "LICENSE", "include/*", "mpsc/*", "wheel/*", "executor/*",
            "packaging/*.in", "packaging/*.map", "packaging/*.supp", "packaging/version.sh",
            "packaging/sources.sh",
            "examples/request_timeout.c")

    def _root(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        text = load(self, os.path.join(self._root(), "include", "tickwheel", "version.h"))
        parts = [re.search(r"#define TW_VERSION_%s (\d+)" % part, text).group(1)
                 for part in ("MAJOR", "MINOR", "PATCH")]
        self.version = ".".join(parts)

    def export_sources(self):
        for pattern in self.tree:
            copy(self, pattern, self._root(), self.export_sources_folder)

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("tickwheel runs on Linux only")

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def layout(self):
        basic_layout(self, src_folder=".")

    def generate(self):
        MesonToolchain(self).generate()

    def build(self):
        meson = Meson(self)
        meson.configure()
        meson.build()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        Meson(self).install()
        # Conan writes such files for each consumer.
        rmdir(self, os.path.join(self.package_folder, "lib", "pkgconfig"))
        rmdir(self, os.path.join(self.package_folder, "lib", "cmake"))

    def package_info(self):
        core, layers = self.cpp_info.components["core"], self.cpp_info.components["layers"]
        core.libs = ["tickwheel"]
        core.system_libs = ["pthread"]
        core.set_property("cmake_target_name", "tickwheel::tickwheel")
        core.set_property("pkg_config_name", "tickwheel")
        layers.libs = ["tickwheel-layers"]
        layers.requires = ["core"]
        layers.set_property("cmake_target_name", "tickwheel::layers")
        layers.set_property("pkg_config_name", "tickwheel-layers")
