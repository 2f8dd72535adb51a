#!/usr/bin/env python3
"""Computes assets/risk/weights.tsv from the labelled sentences beside this file.

Run it after changes of the sentences or of the rules in assets/risk. It needs scikit-learn and the ordinary texts of
`benches/moderation/corpora DIR`:  tests/risk/train.py DIR
"""
import collections
import json
import pathlib
import random
import re
import subprocess
import sys

import numpy
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORK = ROOT / "target" / "risk"
CLASSES = "emergency self_harm minor violence missing_person stopping_medicine crime gambling".split()
# Ordinary texts are many, and say less than sentences that were written for this.
ORDINARY_WEIGHT = 0.6
TYPICAL_WEIGHT = 3.0
# Rarer features are left out, and those without weight.
LEAST_SENTENCES = 4
LEAST_WEIGHT = 0.3
# Taken from the score of every class, so that in doubt a question is harmless.
DOUBT = 0.3


def lines(path):
    return [line.strip() for line in open(path, encoding="utf-8", errors="ignore") if line.strip() and line[0] != "#"]


def labelled(path):
    return [line.split("\t", 1) for line in lines(path)]


def ordinary(corpora):
    random.seed(1)
    texts = lines(ROOT / "assets" / "ordinary-sentences.txt")
    for name, count in ("short", 10_000), ("news", 2_000), ("poems", 2_000), ("reviews", 4_000), ("english", 1_500):
        texts += [text[:120] for text in random.sample(lines(corpora / f"{name}.txt"), count)]
    for path in [*ROOT.glob("assets/classics/*.tsv"), ROOT / "assets" / "hexagrams.tsv"]:
        texts += [field for line in lines(path) for field in line.split("\t") if len(field) > 6]
    for path in ROOT.glob("docs/*.md"):
        plain = re.sub(r"### Help instead.*?\n## ", "", path.read_text(), flags=re.S)
        sentences = re.split(r"(?<=[.])\s+|\n\n|\n- ", plain)
        texts += [text for text in sentences if 15 < len(text) < 160 and not re.search(r"[|`#\n]", text)]
    texts += lines(pathlib.Path(__file__).with_name("harmless.txt"))
    return [["none", text.replace("\t", " ")] for text in texts]


def features(sentences):
    WORK.mkdir(parents=True, exist_ok=True)
    (WORK / "sentences.tsv").write_text("\n".join("\t".join(one) for one in sentences), encoding="utf-8")
    test = "risk::tests::writes_features_for_training"
    subprocess.run(["cargo", "test", "-p", "screening", "--", "--ignored", "--exact", test], cwd=ROOT, check=True)
    found = [line.split("\t") for line in (WORK / "features.tsv").read_text(encoding="utf-8").split("\n")]
    return [one[0] for one in found], [set(one[1:]) for one in found]


def main():
    here = pathlib.Path(__file__).parent
    typical, written = labelled(here / "typical.tsv"), labelled(here / "sentences.tsv")
    others = ordinary(pathlib.Path(sys.argv[1]))
    classes, found = features(typical + written + others)
    own = len(typical) + len(written)
    counts = collections.Counter(feature for features in found[:own] for feature in features)
    kept = sorted(name for name, count in counts.items() if count >= LEAST_SENTENCES or name.startswith("["))
    place = {name: index for index, name in enumerate(kept)}
    data, indices, ends = [], [], [0]
    for features_of_one in found:
        known = [place[name] for name in features_of_one if name in place]
        indices += known
        data += [max(len(known), 1) ** -0.5] * len(known)
        ends.append(len(indices))
    weights = [TYPICAL_WEIGHT] * len(typical) + [1.0] * len(written) + [ORDINARY_WEIGHT] * len(others)
    matrix = csr_matrix((data, indices, ends), shape=(len(found), len(kept)))
    model = LogisticRegression(C=60, max_iter=500).fit(matrix, numpy.array(classes), sample_weight=weights)
    names = list(model.classes_)
    none = names.index("none")
    order = [names.index(name) for name in CLASSES]
    table = (model.coef_ - model.coef_[none])[order].T
    bias = (model.intercept_ - model.intercept_[none])[order] - DOUBT
    with open(ROOT / "assets" / "risk" / "weights.tsv", "w", encoding="utf-8") as out:
        for name, row in [("=", bias), *((name, table[place[name]]) for name in kept)]:
            if name == "=" or max(abs(row)) >= LEAST_WEIGHT:
                cells = ["" if round(value * 100) == 0 else str(round(value * 100)) for value in row]
                out.write("\t".join([name, *cells]).rstrip("\t") + "\n")


if __name__ == "__main__":
    main()
