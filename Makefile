# Every target does all of its own set-up; the steps are in tools/prepare.py, which needs nothing but Python.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
TARGETS := run dev test check bench backup restore psql doctor live-check audit fuzz load screenshots demo lighthouse soak fresh fresh-image fresh-wheel wheel release update texts lock clean
export FILE FORCE VERSION

.PHONY: help $(TARGETS)
help:
	@echo "make run    set everything up and start the product on http://localhost:3000"
	@echo "make dev    the same with hot reload"
	@echo "make test   every check and every test"
	@echo "make check  style and types only"
	@echo "make bench  how fast it is, beside other libraries, and which goals are met (ARGS=--quick: in a few minutes)"
	@echo "make backup   the database in one file, in data/backups or at FILE=; nobody has to stop for it"
	@echo "make restore FILE=…   a database of such a file; FORCE=1 puts the present one aside"
	@echo "make psql   PostgreSQL's prompt on the database, also while nothing runs (ARGS=\"-c 'SELECT 1'\")"
	@echo "make update   the newest release, or VERSION=…, and back to this one with its data if that does not work"
	@echo "make doctor   what a start with your own Discord application still lacks, and how to get it"
	@echo "make live-check   ask the real Discord, OpenSea and nodes with your keys, reading only"
	@echo "make audit   known vulnerabilities of what we depend on (needs a network)"
	@echo "make screenshots   a picture of every screen, in data/screenshots"
	@echo "make demo   the moving picture of the README, filmed in the product"
	@echo "make fuzz   many more odd calls, events and texts than make test tries"
	@echo "make load   500 sockets and 200 calls a second, and their results"
	@echo "make lighthouse    Lighthouse's scores of the public pages"
	@echo "make soak   everything goes wrong for hours, and the verdict (ARGS=\"--seeds 1-20 --seconds 120\")"
	@echo "make fresh   both commands of the README on minimal Debian machines, with the time of each step (as root)"
	@echo "make fresh-image   the image's steps without an engine, and a start of what they make, read-only (as root)"
	@echo "make fresh-wheel   the newest wheel installed and started on minimal Debian machines, with the times (as root)"
	@echo "make wheel   a wheel with the screens inside, in data/wheels: pip installs it, \`holdfast run\` starts it live"
	@echo "make release VERSION=1.2.3   what a release would change, commit and tag; ARGS=--tag does it, and pushes nothing"
	@echo "make texts  collect the texts for people in locales/holdfast.pot and in each language's file"
	@echo "make lock   compile requirements*.txt from requirements*.in"
	@echo "make clean  remove what was made, but not data/"

$(TARGETS):
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed: apt-get install python3 python3-venv))
	@$(PYTHON) -m tools.prepare $@ $(ARGS)
