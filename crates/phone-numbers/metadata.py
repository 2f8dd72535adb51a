#!/usr/bin/env python3
"""Writes metadata.tsv, cases.tsv and src/digits.rs from the PyPI package phonenumbers, a port of libphonenumber.

Usage: metadata.py (in this folder, with phonenumbers installed)
"""
import random
import sys
import unicodedata

import phonenumbers
from phonenumbers import COUNTRY_CODE_TO_REGION_CODE, PhoneNumberType
from phonenumbers.phonemetadata import PhoneMetadata

OTHERS = ["premium_rate", "toll_free", "shared_cost", "voip", "personal_number", "pager", "uan", "voicemail"]
KINDS = {
    PhoneNumberType.MOBILE: "Mobile",
    PhoneNumberType.FIXED_LINE: "FixedLine",
    PhoneNumberType.FIXED_LINE_OR_MOBILE: "FixedLineOrMobile",
}


def pattern(desc):
    return (desc and desc.national_number_pattern) or ""


def row(code, region):
    data = PhoneMetadata.metadata_for_region_or_calling_code(code, region)
    others = "|".join(filter(None, (pattern(getattr(data, name)) for name in OTHERS)))
    lengths = lambda values: ",".join(str(value) for value in values if value > 0)
    rule = data.national_prefix_transform_rule or ""
    for group in "123":
        rule = rule.replace("\\" + group, "${" + group + "}")
    return [
        str(code), region, data.international_prefix or "", data.national_prefix_for_parsing or "", rule,
        data.leading_digits or "", lengths(data.general_desc.possible_length),
        lengths(data.general_desc.possible_length_local_only), pattern(data.general_desc),
        pattern(data.fixed_line), pattern(data.mobile), others,
    ]


def verdict(text, region):
    try:
        number = phonenumbers.parse(text, region)
    except phonenumbers.NumberParseException:
        return "-"
    national = phonenumbers.national_significant_number(number)
    kind = phonenumbers.number_type(number)
    if kind == PhoneNumberType.UNKNOWN:
        return "-"
    region = phonenumbers.region_code_for_number(number)
    return f"{number.country_code} {national} {region} {KINDS.get(kind, 'Other')}"


def cases():
    pick = random.Random(1)
    regions = sorted(phonenumbers.SUPPORTED_REGIONS)
    for region in regions:
        examples = set()
        data = PhoneMetadata.metadata_for_region(region)
        for name in ["fixed_line", "mobile"] + OTHERS:
            desc = getattr(data, name)
            if desc and desc.example_number:
                examples.add(desc.example_number)
        code = data.country_code
        for example in sorted(examples):
            for text in (example, (data.national_prefix or "") + example, f"+{code}{example}", f"{code}{example}"):
                yield text, region
            changed = list(example)
            for _ in range(2):
                changed[pick.randrange(len(changed))] = pick.choice("0123456789")
            yield f"+{code}" + "".join(changed), region
            yield f"00{code}{example}", "CN"
        for _ in range(6):
            yield "".join(pick.choice("0123456789") for _ in range(pick.randint(3, 15))), region
    for code, known in sorted(COUNTRY_CODE_TO_REGION_CODE.items()):
        for _ in range(4):
            yield f"+{code}" + "".join(pick.choice("0123456789") for _ in range(pick.randint(6, 11))), known[0].replace("001", "CN")


def write(name, lines):
    with open(name, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


write("metadata.tsv", (
    "\t".join(row(code, region)) for code, regions in sorted(COUNTRY_CODE_TO_REGION_CODE.items()) for region in regions
))
sample = sorted(random.Random(2).sample(sorted(set(cases())), 2500))
write("cases.tsv", ("\t".join([text, region, verdict(text, region)]) for text, region in sample))
zeros = [chr(point) for point in range(sys.maxunicode + 1) if unicodedata.decimal(chr(point), None) == 0]
zeros = [zero for zero in zeros if all(unicodedata.decimal(chr(ord(zero) + digit), None) == digit for digit in range(10))]
write("src/digits.rs", [
    "//! The zeros of all scripts, each followed by its nine other digits. Written by `metadata.py`.", "",
    "#[rustfmt::skip]",
    f"pub const ZEROS: [char; {len(zeros)}] = [",
    *("    " + " ".join(f"'\\u{{{ord(zero):x}}}'," for zero in zeros[at:at + 8]) for at in range(0, len(zeros), 8)),
    "];",
])
