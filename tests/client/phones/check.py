"""Checks the Swift and Dart code that OpenAPI Generator writes, without their compilers.

Each file parses, names are declared once in their scope, each type that is used exists, and so does each name in an example.

    check.py swift|dart SOURCES EXAMPLE
"""

import importlib
import re
import sys
from collections import Counter
from pathlib import Path

from tree_sitter import Language, Parser

language, sources, example = sys.argv[1:]
parser = Parser(Language(importlib.import_module(f"tree_sitter_{language}").language()))

TYPES = {"swift": {"class_declaration", "protocol_declaration", "typealias_declaration"},
         "dart": {"class_definition", "enum_declaration", "type_alias", "extension_declaration"}}[language]
NAMES = {"type_identifier", "simple_identifier", "identifier"}
# Members that every enumeration has.
TAKEN = {"swift": {"Type", "allCases", "hashValue", "init", "rawValue", "self"},
         "dart": {"hashCode", "index", "noSuchMethod", "runtimeType", "toString", "values"}}[language]
# Code that is the same for every document. The grammars do not know all of its syntax.
RUNTIME = {"Infrastructure", "auth", "api.dart", "api_client.dart", "api_exception.dart", "api_helper.dart"}
PLATFORM = {
    "swift": """Any AnyObject Array Bool CaseIterable Codable CodingKey Data Date Decodable Decoder DecodingError Dictionary Double
        Encodable Encoder Float Foundation Hashable Int Int64 JSONDecoder JSONEncoder Never Self Sendable Set String Type URL
        URLComponents UUID Identifiable Void available""",
    "dart": """DateTime Future Iterable List Map MultipartRequest Never Null Object Response Set String bool double dynamic int num
        void""",
}[language].split()

faults = []


def children(node, kinds):
    return [child for child in node.children if child.type in kinds]


def text(node):
    return node.text.decode()


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)


def name_of(node):
    return next((text(child) for child in children(node, NAMES)), None)


def members(body):
    """Yields the names of the stored properties and enumeration values of a type."""
    for child in body.children:
        if child.type in {"enum_entry", "enum_constant"}:
            yield name_of(child)
        elif child.type == "property_declaration":
            yield from (text(pattern) for pattern in children(child, {"pattern"}))
        elif child.type == "declaration":
            for names in children(child, {"initialized_identifier_list"}):
                yield from (name_of(name) for name in names.children if name.is_named)


def expect_once(names, where):
    for name, count in Counter(names).items():
        if count > 1:
            faults.append(f"{where}: {name} is declared {count} times")


roots, declared, used, known = {}, [], {}, set()
for path in sorted(Path(sources).rglob(f"*.{language}")):
    if "test" in path.parts:
        continue
    root = parser.parse(path.read_bytes()).root_node
    known |= {text(node) for node in walk(root) if node.type in NAMES}
    declared += [name_of(node) for node in children(root, TYPES)]
    if not RUNTIME & {path.name, path.parent.name}:
        roots[path.name] = root
expect_once((name for name in declared if name), "all files")
nested = set()
for file, root in roots.items():
    for node in walk(root):
        if node.type == "ERROR" or node.is_missing:
            faults.append(f"{file}:{node.start_point.row + 1}: does not parse: {text(node)[:60]}")
        elif node.type == "type_identifier":
            used.setdefault(text(node), file)
        elif node.type in TYPES:
            nested.add(name_of(node))
            bodies = [child for child in node.children if child.type.endswith("_body")]
            own = [name for body in bodies for name in members(body) if name]
            own += [name_of(inner) for body in bodies for inner in children(body, TYPES)]
            expect_once(own, f"{file}: {name_of(node)}")
            if any(children(body, {"enum_entry", "enum_constant"}) for body in bodies):
                faults += [f"{file}: {name_of(node)}.{name} is a member already" for name in own if name in TAKEN]
        if node.type in NAMES and not re.fullmatch(r"[`$_A-Za-z][`$_A-Za-z0-9]*", text(node)):
            faults.append(f"{file}: {text(node)} is no plain name")
faults += [f"{file}: no type {name}" for name, file in used.items() if name not in {*declared, *nested, *PLATFORM}]

code = Path(example).read_bytes()
root = parser.parse(code).root_node
if root.has_error:
    faults.append(f"the example does not parse: {root}")
own_names = set(re.findall(r"(?:let|final|String|import) *(\w+)", code.decode()))
for node in walk(root):
    if node.type in NAMES and text(node) not in known | own_names | {*PLATFORM}:
        faults.append(f"the example: no {text(node)}")

print(f"{language}: {len(roots)} files, {len(declared)} types")
if len(roots) < 100 or len(declared) < 100:
    faults.append("the generator wrote less than the document has")
if faults:
    sys.exit("\n".join(faults[:40]))
