"""pyahocorasick, ahocorasick_rs and flashtext, as far as they are installed."""

import importlib
import resource
import sys
import time

directory = sys.argv[1]


def lines(name):
    with open(f"{directory}/{name}", encoding="utf-8") as file:
        return file.read().split("\n")


words = lines("words.txt")
texts = [lines("texts0.txt"), lines("texts1.txt")]


def optional(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


libraries = {}
made = {}

if pyahocorasick := optional("ahocorasick"):

    def automaton():
        built = pyahocorasick.Automaton()
        for word in words:
            built.add_word(word, word)
        built.make_automaton()
        return built

    libraries["pyahocorasick (PyPI)"] = (automaton, lambda built, text: next(built.iter(text), None) is not None)

if rust := optional("ahocorasick_rs"):
    libraries["ahocorasick_rs (PyPI)"] = (
        lambda: rust.AhoCorasick(words, matchkind=rust.MatchKind.LeftmostLongest),
        lambda built, text: bool(built.find_matches_as_indexes(text)),
    )

if flashtext := optional("flashtext"):

    def processor():
        built = flashtext.KeywordProcessor()
        for word in words:
            built.add_keyword(word)
        return built

    libraries["flashtext (PyPI)"] = (processor, lambda built, text: bool(built.extract_keywords(text)))

print("\t".join(libraries), flush=True)
for line in sys.stdin:
    action, name, *length = line.rstrip("\n").split("\t")
    make, finds = libraries[name]
    if action == "build":
        made.pop(name, None)
        before, begun = resident(), time.perf_counter()
        made[name] = make()
        print(time.perf_counter() - begun, max(0, resident() - before), flush=True)
    else:
        begun, built = time.perf_counter(), made[name]
        found = sum(1 for text in texts[int(length[0])] if finds(built, text))
        print(found, time.perf_counter() - begun, flush=True)
