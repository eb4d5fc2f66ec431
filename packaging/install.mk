# Installing and packaging.
#
# Knobs: PREFIX, libdir, includedir, datadir, mandir, docdir (final places); DESTDIR, for packagers, is put before each.

PREFIX     ?= /usr/local
libdir     ?= $(PREFIX)/lib
includedir ?= $(PREFIX)/include
datadir    ?= $(PREFIX)/share
mandir     ?= $(PREFIX)/share/man
docdir     ?= $(PREFIX)/share/doc/tickwheel
DESTDIR    ?=

places = PREFIX='$(PREFIX)' libdir='$(libdir)' includedir='$(includedir)' \
	datadir='$(datadir)' mandir='$(mandir)' docdir='$(docdir)' \
	DESTDIR='$(DESTDIR)' VERSION=$(VERSION) SOVERSION=$(SOVERSION) \
	LIBRARY=$B MANUAL=build/man

.PHONY: install uninstall man dist deb
.PHONY: check-install check-man check-musl check-meson check-embed check-ports check-deb check-packages

##@ Install and package

# Checks that all places can be written before it builds or copies anything.
install: deps-build ## library, headers, manual, pkg-config and CMake files; PREFIX=/usr/local, DESTDIR=
	$(Q)$(places) packaging/install.sh --check
	$(again) $(archives) $(shared) man MODE=$(MODE)
	$(Q)$(places) packaging/install.sh

uninstall: ## removes the installed files (same knobs)
	$(Q)$(places) packaging/uninstall.sh

man: ## the manual pages, made from the headers, in build/man
	$(Q)man/pages.sh build/man $(VERSION)

dist: ## build/tickwheel-VERSION.tar.gz of the last commit
	$(Q)packaging/dist.sh build $(VERSION)

# dpkg-buildpackage writes beside its sources, so it gets a copy of this tree. debian/ says the rest.
deb_tree = build/deb/tickwheel-$(VERSION)
deb: deps-deb ## Debian packages of this tree, source and binary, in build/deb
	$(Q)rm -rf build/deb && mkdir -p $(deb_tree)
	$(Q)tar --exclude=./build --exclude=./.git -cf - . | tar -xf - -C $(deb_tree)
	$(Q)cd $(deb_tree) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL dpkg-buildpackage -us -uc >../log 2>&1 || \
		{ tail -n 20 ../log >&2; exit 1; }
	@ls build/deb/*.deb

check-install: deps-build+test+install ## installs, builds programs and examples against it, moves the tree, uninstalls
	$(again) $(archives) $(shared) man MODE=$(MODE)
	$(Q)test/package/deps.sh
	$(Q)MAKE='$(MAKE)' CC='$(CC)' test/package/install.sh $B
	$(Q)MAKE='$(MAKE)' CC='$(CC)' test/package/moved.sh $B
	$(Q)MAKE='$(MAKE)' CC='$(CC)' test/package/tsan.sh $B

check-man: deps-build+man ## the manual has every function, and mandoc finds no fault
	$(again) $(archives) $(shared) man MODE=$(MODE)
	$(Q)CC='$(CC)' test/lint/man.sh build/man $(shared)

check-musl: deps-musl ## the static library and examples, with musl
	$(Q)MAKE='$(MAKE)' test/system/musl.sh build/musl

check-meson: deps-build+meson ## meson builds, tests and installs the library
	$(again) $(shared) MODE=$(MODE)
	$(Q)CC='$(CC)' test/package/meson.sh $B

check-embed: deps-build+meson ## a meson wrap, FetchContent, add_subdirectory: nothing but the library is built
	$(Q)CC='$(CC)' test/package/embed.sh

check-ports: deps-build+meson ## vcpkg's portfile and Conan's recipe, run by stand-ins
	$(Q)CC='$(CC)' test/package/ports.sh

check-packages: ## check-install, -man, -musl, -meson, -embed, -ports and -deb, one after the other
	$(again) check-install
	$(again) check-man
	$(again) check-musl
	$(again) check-meson
	$(again) check-embed
	$(again) check-ports
	$(again) check-deb
	@echo "packages: ok"

check-deb: deb deps-man ## lintian, and the Debian packages in a separate root, where an example is built and run
	$(Q)CC='$(CC)' test/package/deb.sh build/deb $(VERSION)
