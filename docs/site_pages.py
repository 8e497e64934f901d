"""Make the generated parts of the site: tables of commands, models, readers and recipes; whole pages from other files.

mkdocs calls the functions `on_...` (`hooks` in mkdocs.yml). A line `<!-- generated: NAME -->` of a page
becomes the result of the function NAME.
"""

import argparse
import ast
import importlib
import inspect
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from functools import cache
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent

from markdown.extensions.toc import slugify

from hat_fairseq import cli
from hat_fairseq.analysis.template import fill
from hat_fairseq.data import readers as reader_modules
from hat_fairseq.recipes import files as recipe_files

ROOT = Path(__file__).resolve().parents[1]
OTHER_PAGES = {"index.md": ROOT / "README.md"}
MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)
FIGURE = re.compile(r"<!-- /?figure[\w -]* -->")  # where studies/figures.py writes
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#:\s]+)((?:#[^)\s]*)?)\)")
FILE_NAME = re.compile(r"[\w./]+\.md")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
CELL = re.compile(r"<(t[dh])\b.*?</\1>", re.DOTALL)
CODE = re.compile(r"<code[^>]*>.*?</code>", re.DOTALL)
LOOK = re.compile(r"^hat look .*$", re.MULTILINE)
logging.getLogger("MARKDOWN").setLevel(logging.INFO)  # an import of hat_fairseq lets it write more


def on_files(files, config):
    """Adds README.md as the start page, the live pages, and a page for each verb."""
    from mkdocs.structure.files import File

    for name, path in OTHER_PAGES.items():
        text = path.read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, name, content=text))
    for name, make in LIVE_PAGES.items():
        files.append(File.generated(config, name, content=make()))
    for verb in verbs():
        files.append(File.generated(config, f"hat_{verb}.md", content="\n".join(verb_page(verb))))
    return files


def on_page_markdown(markdown, page, config, files):
    """Fills in the generated parts, and the titles of pages in links that name their files.

    Links to files of the repository that are not in the site become their text.
    """

    def link(match):
        text, target, anchor = match.groups()
        path = os.path.normpath(ROOT / "docs" / target)
        target = next((name for name, source in OTHER_PAGES.items() if str(source) == path), target)
        if (file := files.get_file_from_path(target)) is None:
            return text
        return f"[{title(file, anchor) if FILE_NAME.fullmatch(text) else text}]({target}{anchor})"

    markdown = FIGURE.sub("", markdown)
    return LINK.sub(link, MARK.sub(lambda match: "\n".join(PARTS[match[1]]()), markdown))


def on_page_content(html, page, config, files):
    """Marks flags, which site.css keeps on one line; in cells shows the bars that Markdown needs escaped, and lets long
    names break after an underscore.
    """
    html = CELL.sub(lambda cell: CODE.sub(lambda code: breakable(code[0]), cell[0]), html)
    return re.sub(r"<code>(?=--[^<]{1,30}</code>)", '<code class="flag">', html)


def breakable(code):
    """The code of a cell with places where a line may end."""
    return re.sub(r"(?<=[a-z]_)(?=[a-z0-9_]{8})", "<wbr>", code.replace("\\|", "|<wbr>"))


def title(file, anchor):
    """The heading of a page at this anchor, else the page's title in the navigation."""
    headings = {f"#{slugify(re.sub('[`*]', '', text), '-')}": text for text in HEADING.findall(file.content_string)}
    return headings.get(anchor, file.page.title)


@cache
def live_look():
    """The page that the first command `hat look` of docs/look.md makes."""
    _, *words = shlex.split(LOOK.search((ROOT / "docs/look.md").read_text(encoding="utf-8"))[0])
    with TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hat_fairseq.cli", *words]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
        return Path(folder, words[-1]).read_text(encoding="utf-8")


def live_ask():
    """The page that `hat ask` of docs/ask.md makes, from its data: building the site needs no MiniLM."""
    return fill("ask", json.loads((ROOT / "docs/ask_page.json").read_text(encoding="utf-8")))


def cell(text):
    """A text as a cell of a table, in which nothing is markup but code."""
    return escape(" ".join(str(text).split()), quote=False).replace("|", "\\|").replace("*", "\\*")


def options(parser, level):
    """The lines of a command: heading, help, usage, a table for each group of options, and its sub-commands."""
    formatter = parser._get_formatter()
    yield from ("", f"{'#' * level} {parser.prog}", "", cell(parser.description), "")
    yield from ("```", parser.format_usage().strip(), "```")
    for group in parser._action_groups:
        subs = [action for action in group._group_actions if isinstance(action, argparse._SubParsersAction)]
        actions = [action for action in group._group_actions if action not in subs and action.dest != "help"]
        if actions:
            yield from ("", f"| {group.title} | |", "|---|---|")
        for action in actions:
            values = "|".join(map(str, action.choices or ())) if action.metavar is None else action.metavar
            values = "" if isinstance(values, tuple) or not action.option_strings else f" {values}"
            names = ", ".join(action.option_strings) or action.metavar or action.dest
            yield f"| `{cell(names + values)}` | {cell(formatter._expand_help(action))} |"
        for sub in (sub for action in subs for sub in action.choices.values()):
            yield from options(sub, level + 1)


def verbs():
    """All verbs, in the order of `hat --help`."""
    return [verb for names in cli.GROUPS.values() for verb in names]


def verb_page(verb):
    """The page of a verb: its help, and those of its sub-commands."""
    parser = argparse.ArgumentParser(f"hat {verb}", description=cli.verb_help(verb))
    cli.import_verb(verb).add_arguments(parser)
    return options(parser, 1)


def commands():
    """A table of all verbs, by the groups of `hat --help`."""
    for title, names in cli.GROUPS.items():
        yield from ("", f"## {title.capitalize()}", "", "| command | |", "|---|---|")
        for verb in names:
            yield f"| [hat {verb}](hat_{verb}.md) | {cell(cli.verb_help(verb))} |"


def api():
    """The public names of the package with their signatures and docstrings."""
    for path, members in PUBLIC.items():
        module, name = path.rsplit(".", 1)
        found = getattr(importlib.import_module(module), name)
        yield from ("", f"## {name}", "", f"`{path}`", "", *documented(found, name, path))
        for member in members:
            yield from ("", f"### {name}.{member}", "", *documented(getattr(found, member), member, f"{path}.{member}"))


def documented(found, name, path):
    """The signature and the docstring of something public; ValueError for one that has none."""
    text = inspect.getdoc(found)
    if not text:
        raise ValueError(f"{path} has no docstring")
    yield from ("```python", written(name, inspect.signature(found)), "```", "")
    for part in re.split(r"\n(?=(?:Args|Returns|Raises|Attributes):\n)", text):
        head, _, rest = part.partition(":\n")
        if rest and head.isalpha():
            part = f"**{head}**\n\n" + re.sub(r"^(\w[\w, *]*): ", r"- `\1`: ", dedent(rest), flags=re.MULTILINE)
        yield from (part, "")


def written(name, signature):
    """A signature without `self`, a line for each parameter if it is long."""
    parameters = [parameter(each) for each in signature.parameters.values() if each.name != "self"]
    end = (
        "" if signature.return_annotation in (signature.empty, "None") else f" -> {short(signature.return_annotation)}"
    )
    line = f"{name}({', '.join(parameters)}){end}"
    return line if len(line) <= 80 else f"{name}(\n    " + ",\n    ".join(parameters) + f",\n){end}"


def parameter(each):
    stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
    text = stars + each.name + ("" if each.annotation is each.empty else f": {short(each.annotation)}")
    if each.default is each.empty:
        return text
    return f"{text} = {json.dumps(each.default) if isinstance(each.default, str) else each.default}"


def short(annotation):
    """A type without the modules of its names."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def models():
    """The flags of fairseq-train that each model has; `hat_bart` has those of `hat_transformer`."""
    from hat_fairseq.networks import NETWORKS
    from hat_fairseq.options import options_of, typed

    for network in (name for name in NETWORKS if name != "hat_bart"):
        yield from ("", f"### {network}", "", "| flag | default | |", "|---|---|---|")
        for name, option in options_of(NETWORKS[network]).items():
            default = (
                "" if option.default is None else "off" if option.default is False else f"`{cell(option.default)}`"
            )
            yield f"| `{typed(name)}` | {default} | {cell(option.help)} |"


def readers():
    """Each reader: the kind of its records, the sizes of the release, and the text at the top of its file."""
    for name in reader_modules.names():
        reader = reader_modules.find_reader(name)
        sizes = ((split, [f"{n:,}" for n in reader.release.get(split, ())]) for split in reader.splits)
        text = ", ".join(f"{split} {' or '.join(numbers) or '(number not known)'}" for split, numbers in sizes)
        source = (reader_modules.READERS / f"{name}.py").read_text(encoding="utf-8")
        yield from ("", f"### {name}", "", f"Kind `{reader.kind}`. Records: {text}.", "")
        text = ast.get_docstring(ast.parse(source)).replace("::\n", ":\n")
        text = re.sub(r"^(\S.*)\n    (?=\S)", r"\n\1\n:   ", text, flags=re.MULTILINE)  # a term and its definition
        yield re.sub(r"^(train|valid|test1?)   +", r"- \1: ", text, flags=re.MULTILINE)


def recipes():
    """A table of the recipes: what each trains from what, and what their files say that they need."""
    yield "| recipe | architecture | tokens | starts from | |"
    yield "|---|---|---|---|---|"
    for name in recipe_files.names():
        path = recipe_files.find(name)
        recipe = recipe_files.load(path)
        train = recipe["task"] | recipe["train"]
        start = train.get("finetune-from-model") or train.get("encoder-from", "random weights")
        tokens = recipe["preprocess"].get("max-source-tokens", "")
        start = re.sub(r"^checkpoints/|/(checkpoint_\w+|model)\.pt$", "", start)
        row = (f"`{train['arch']}`", tokens, start, " ".join(recipe_files.head(path)[:3]))
        yield f"| `{name}` | {' | '.join(map(cell, row))} |"


# What is public beside the commands: classes with the methods that are for users.
PUBLIC = {
    "hat_fairseq.load": (),
    "hat_fairseq.inference.python.Model": (
        *("generate", "predict", "ask", "embed", "encode_query", "encode_document", "encoder", "look", "push_to_hub"),
    ),
    "hat_fairseq.units.answers.Answers": (),
    "hat_fairseq.units.answers.Question": (),
    "hat_fairseq.units.answers.Passage": (),
    "hat_fairseq.units.answers.Line": (),
    "hat_fairseq.networks.build": (),
    "hat_fairseq.register.register": (),
}
PARTS = {"api": api, "commands": commands, "models": models, "readers": readers, "recipes": recipes}
LIVE_PAGES = {"look_page.html": live_look, "ask_page.html": live_ask}
