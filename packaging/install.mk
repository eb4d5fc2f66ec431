# Installing and packaging. Knobs: PREFIX, libdir, includedir, mandir, docdir (final places), DESTDIR (put before each, for packagers).

PREFIX     ?= /usr/local
libdir     ?= $(PREFIX)/lib
includedir ?= $(PREFIX)/include
mandir     ?= $(PREFIX)/share/man
docdir     ?= $(PREFIX)/share/doc/tickwheel
DESTDIR    ?=

places = PREFIX='$(PREFIX)' libdir='$(libdir)' includedir='$(includedir)' mandir='$(mandir)' docdir='$(docdir)' \
	DESTDIR='$(DESTDIR)' VERSION=$(VERSION) SOVERSION=$(SOVERSION) CK_LIBS='$(strip $(ck_libs))' LIBRARY=$B MANUAL=build/man

.PHONY: install uninstall man dist deb check-install check-man check-musl check-deb

# Where it cannot be written is found out before anything is built or copied.
install: deps-build ## the library, headers, manual, for pkg-config and CMake: PREFIX=/usr/local, DESTDIR=
	$(Q)$(places) packaging/install.sh --check
	$(again) $(lib) $B/libtickwheel.so man MODE=$(MODE)
	$(Q)$(places) packaging/install.sh

uninstall: ## removes what install has put there (same knobs)
	$(Q)$(places) packaging/uninstall.sh

man: ## the manual pages, from the headers: build/man
	$(Q)man/pages.sh build/man $(VERSION)

dist: ## build/tickwheel-VERSION.tar.gz of the last commit
	$(Q)packaging/dist.sh build $(VERSION)

deb: deps-deb ## Debian packages of this tree, in build/deb
	$(again) build/release/libtickwheel.a build/release/libtickwheel.so man MODE=release
	$(Q)MAKE='$(MAKE)' packaging/deb.sh build/deb $(VERSION) $(SOVERSION)

check-install: deps-build+test+install ## installs to a fresh prefix, builds a program with pkg-config and CMake, uninstalls; bad input
	$(again) $(lib) $B/libtickwheel.so man MODE=$(MODE)
	$(Q)MAKE='$(MAKE)' CC='$(CC)' test/install.sh $B

check-man: deps-build+man ## the manual says what the headers say, and its pages are sound
	$(again) $(lib) $B/libtickwheel.so man MODE=$(MODE)
	$(Q)CC='$(CC)' test/man.sh build/man $B/libtickwheel.so

check-musl: deps-musl ## the static library and examples, with musl
	$(Q)MAKE='$(MAKE)' test/musl.sh build/musl

check-deb: deb deps-man ## installs the Debian packages into a root of their own, and runs an example there
	$(Q)CC='$(CC)' test/deb.sh build/deb
