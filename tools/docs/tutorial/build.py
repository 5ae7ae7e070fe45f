#!/usr/bin/env python3
"""Makes the tutorial's pages.

    tools/docs/tutorial/build.py OUT [--recordings FOLDER]

OUT gets one page a chapter, index.html, and what they need: they open from the file, without a network. FOLDER has the explorer's
pages NN_name.html of all recordings that chapters show (the programs recorded_NN write them); without it there are none. Where it
has a folder gallery, that holds those of //tools/see:gallery. Wants Debian's python3-markdown, python3-pygments and katex. Where
OUT/../index.html is, pages lead there.
"""
import argparse
import gzip
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).absolute().parent
sys.path.insert(0, str(HERE))
try:
    import markdown
    import pygments.lexers
    import pygments.token
except ImportError:  # another Python than Debian's comes first in PATH
    if sys.executable == '/usr/bin/python3' or not os.path.exists('/usr/bin/python3'):
        sys.exit('docs: python3-markdown and python3-pygments are missing (./tools/setup.sh docs)')
    os.execv('/usr/bin/python3', ['/usr/bin/python3'] + sys.argv)

import literate  # noqa: E402

KATEX = [pathlib.Path('/usr/share/javascript/katex'), pathlib.Path('/usr/share/nodejs/katex/dist')]
PICTURES = {'light': 'cnn.png', 'dark': 'gpus_dark.png'}  # of the explorer
RENDER = """
const katex = require('katex');
const all = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const one = ([text, display]) => katex.renderToString(text, {displayMode: display, throwOnError: true, output: 'html'});
process.stdout.write(JSON.stringify(all.map(one)));
"""
T = pygments.token.Token
CLASSES = [(T.Comment.Preproc, 'p'), (T.Comment, 'c'), (T.Keyword, 'k'), (T.String, 's'), (T.Number, 'n')]

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="UTF-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<link rel="stylesheet" href="katex/katex.min.css">
<link rel="stylesheet" href="style.css">
<link rel="stylesheet" href="tutorial.css">
<script>
(function () {{
  let kept = null;
  try {{ kept = localStorage.getItem("theme"); }} catch (e) {{}}
  if (kept) document.documentElement.dataset.theme = kept;
}})();
function turnTheme() {{
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {{ localStorage.setItem("theme", root.dataset.theme); }} catch (e) {{}}
}}
</script>
</head>
<body>
<header class="bar">
<a class="home" href="{home}">Ramet</a>
<nav><a href="index.html">Tutorial</a>{reference}</nav>
<button class="theme" type="button" onclick="turnTheme()">Light / dark</button>
</header>
<div class="page">
<nav class="contents" aria-label="Chapters">{contents}</nav>
<main>
{body}
{turn}
</main>
</div>
<script>
// On a phone the chapters are folded.
if (matchMedia("(max-width: 56rem)").matches) document.querySelector(".contents details").open = false;
</script>
</body>
</html>
"""


def coloured(code):
    out = []
    for kind, text in pygments.lexers.CppLexer(stripnl=False, ensurenl=False).get_tokens(code):
        name = next((c for k, c in CLASSES if kind in k), '')
        text = html.escape(text, quote=False)
        out.append(f'<span class="{name}">{text}</span>' if name and text.strip() else text)
    return ''.join(out)


class Formulas:
    """Takes formulas out of a text and puts them back as HTML: all of them are made by one call of KaTeX."""

    def __init__(self):
        self.all = []

    def take(self, text):
        def keep(match, display):
            self.all.append([match.group(1).strip(), display])
            return f'FORMULA{len(self.all) - 1}END'
        parts = re.split(r'(`[^`]*`)', text)  # not in code
        for i in range(0, len(parts), 2):
            parts[i] = re.sub(r'\$\$(.+?)\$\$', lambda m: keep(m, True), parts[i], flags=re.S)
            parts[i] = re.sub(r'\$([^$]+?)\$', lambda m: keep(m, False), parts[i])
        return ''.join(parts)

    def render(self):
        env = dict(os.environ, NODE_PATH='/usr/share/nodejs:/usr/lib/nodejs')
        run = subprocess.run(['node', '-e', RENDER], input=json.dumps(self.all), capture_output=True, text=True, env=env)
        if run.returncode:
            sys.exit('docs: KaTeX: ' + run.stderr.strip())
        self.made = json.loads(run.stdout)

    def put_back(self, text):
        text = re.sub(r'<p>FORMULA(\d+)END</p>', lambda m: f'<div class="formula">{self.made[int(m.group(1))]}</div>', text)
        return re.sub(r'FORMULA(\d+)END', lambda m: self.made[int(m.group(1))], text)


def page_of(block, number):
    return f'{number}_{block.values["name"]}.html'


def block_html(block, recordings, number):
    text = '\n'.join(block.text)
    if block.kind == 'output':
        note = {'vary': 'Times: yours are others.', 'near': 'The last digits depend on the processor.'}.get(block.values.get('numbers'))
        note = f'<div class="note">{note}</div>' if note else ''
        return f'<div class="output"><pre>{html.escape(text, quote=False)}</pre>{note}</div>'
    if block.kind == 'text':
        return f'<pre class="drawing">{html.escape(text, quote=False)}</pre>'
    if block.kind == 'recording':
        if not recordings:
            return ''
        page = page_of(block, number)
        if not (recordings / page).is_file():
            sys.exit(f'docs: there is no {recordings / page}: recorded_{number} writes it')
        return (f'<figure class="recording"><iframe src="recordings/{page}" loading="lazy" title="{html.escape(text)}"></iframe>'
                f'<figcaption><span>{html.escape(text)}: step through it.</span>'
                f'<a href="recordings/{page}">Open the page</a></figcaption></figure>')
    label = block.values.get('file') or block.values.get('quote')
    label = f'<span class="label">{html.escape(label)}</span>' if label else ''
    kind = 'block quote' if 'quote' in block.values else 'block'
    return f'<div class="{kind}">{label}<pre><code>{coloured(text.strip(chr(10)))}</code></pre></div>'


class Chapter:
    def __init__(self, path, formulas, recordings):
        self.path, self.file = path, path.stem + '.html'
        self.number = path.name[:2] if path.name[:2].isdigit() else ''
        lines, self.blocks = literate.parse(path)
        out, inside, count = [], False, 0
        for line in lines:
            if line.startswith('```'):
                inside = not inside
                if inside:
                    out += ['', f'BLOCK{count}END', '']
                    count += 1
            elif not inside:
                out.append(line.replace('<details>', '<details markdown="1">'))
        self.title = next(line[2:] for line in out if line.startswith('# '))
        text = formulas.take('\n'.join(line for line in out if not line.startswith('# ')))
        converter = markdown.Markdown(extensions=['tables', 'md_in_html', 'sane_lists', 'toc'], extension_configs={'toc': {'toc_depth': '2'}})
        self.html = converter.convert(text)
        self.sections = converter.toc_tokens
        for i, block in enumerate(self.blocks):
            made = block_html(block, recordings, self.number)
            self.html = re.sub(rf'<p>BLOCK{i}END</p>', lambda m: made, self.html)

    def summary(self):
        first = re.search(r'<p>(.*?)</p>', self.html, flags=re.S).group(1)
        sentences = re.split(r'(?<=[.?!])\s+', re.sub(r'\s+', ' ', first))
        return ' '.join(sentences[:2])


def contents(chapters, here):
    items = []
    for c in chapters:
        mine = ''
        if c is here:
            mine = '<ol>%s</ol>' % ''.join(f'<li><a href="#{s["id"]}">{s["name"]}</a></li>' for s in c.sections)
        items.append(f'<li{" class=here" if c is here else ""}><a href="{c.file}">{c.title}</a>{mine}</li>')
    return f'<details open><summary>Chapters</summary><ol>{"".join(items)}</ol></details>'


def gallery(recordings):
    """Links to whole training steps, which //tools/see:gallery has recorded into a folder of the recordings."""
    items = ''
    for page in sorted((recordings / 'gallery').glob('*.html')):
        with gzip.open(page.with_suffix('.ramet.gz'), 'rt', encoding='utf-8') as f:
            title = json.load(f)['title']
        items += f'<li><a href="recordings/gallery/{page.name}">{html.escape(title, quote=False)}</a></li>'
    return items


def recorded(chapters, recordings):
    """What the front page says of the explorer's pages: a picture, and where each is."""
    items = ''
    for c in chapters:
        for block in c.blocks:
            if block.kind == 'recording':
                title = html.escape(' '.join(block.text).strip(), quote=False)
                items += f'<li><a href="recordings/{page_of(block, c.number)}">{title}</a>, of <a href="{c.file}">chapter {int(c.number)}</a></li>'
    pictures = ''.join(f'<img class="{theme}" src="pictures/{name}" width="1366" height="768" alt="A data-parallel step in the '
                       f'middle of its backward: the graph, the timeline and one operation\'s details">' for theme, name in PICTURES.items())
    return f'''<h2 id="recordings">Steps to walk through</h2>
<p>The programs of these chapters were recorded while they ran. Each recording is a page: its slider, or the arrow keys, walk forward and
backward through everything that happened, and a click on a node says what it got, what it keeps and what it gives.
<code>./tools/train --explore</code> makes such a page of a network in training.</p>
<figure class="recording">{pictures}<figcaption>A small network, data-parallel, in the middle of its backward.</figcaption></figure>
<ul>{items}{gallery(recordings)}</ul>'''


def turn(before, after):
    links = ''
    if before:
        links += f'<a href="{before.file}"><span>Before</span>{before.title}</a>'
    if after:
        links += f'<a class="next" href="{after.file}"><span>Next</span>{after.title}</a>'
    return f'<nav class="turn">{links}</nav>'


def build(out, recordings):
    formulas = Formulas()
    chapters = [Chapter(p, formulas, recordings) for p in sorted(HERE.glob('[0-9][0-9]_*.md'))]
    front = Chapter(HERE / 'index.md', formulas, None)
    formulas.render()
    out.mkdir(parents=True, exist_ok=True)
    reference = (out.parent / 'index.html').is_file()
    common = {'home': '../index.html' if reference else 'index.html', 'reference': '<a href="../index.html">Reference</a>' if reference else ''}
    for i, c in enumerate(chapters):
        body = f'<h1><span class="number">Chapter {int(c.number)}</span>{c.title}</h1>\n{c.html}'
        page = PAGE.format(title=f'{c.title} - Ramet', contents=contents(chapters, c), body=body,
                           turn=turn(chapters[i - 1] if i else None, chapters[i + 1] if i + 1 < len(chapters) else None), **common)
        (out / c.file).write_text(formulas.put_back(page), encoding='utf-8')
    listed = ''.join(f'<li value="{int(c.number)}"><a href="{c.file}">{int(c.number)}. {c.title}</a><p>{c.summary()}</p></li>' for c in chapters)
    body = f'<h1>{front.title}</h1>\n' + front.html.replace('<!--CHAPTERS-->', f'<ol class="chapters">{listed}</ol>')
    body = body.replace('<!--RECORDINGS-->', recorded(chapters, recordings) if recordings else '')
    page = PAGE.format(title=f'{front.title} - Ramet', contents=contents(chapters, front), body=body, turn=turn(None, chapters[0]), **common)
    (out / 'index.html').write_text(formulas.put_back(page), encoding='utf-8')
    for sheet in (HERE.parent / 'style.css', HERE / 'tutorial.css'):
        shutil.copy(sheet, out)
    katex = next((k for k in KATEX if (k / 'katex.min.css').is_file()), None)
    if not katex:
        sys.exit('docs: KaTeX is missing (./tools/setup.sh docs)')
    shutil.rmtree(out / 'katex', ignore_errors=True)
    (out / 'katex/fonts').mkdir(parents=True)
    shutil.copy(katex / 'katex.min.css', out / 'katex')
    for font in (katex / 'fonts').glob('*.woff2'):  # what every browser of today reads
        shutil.copy(font, out / 'katex/fonts')
    shown = [page_of(b, c.number) for c in chapters for b in c.blocks if b.kind == 'recording'] if recordings else []
    for folder, files in (('recordings', [recordings / page for page in shown]),
                          ('pictures', [HERE.parent / 'explorer/pictures' / name for name in PICTURES.values() if shown])):
        shutil.rmtree(out / folder, ignore_errors=True)
        for file in files:
            (out / folder).mkdir(exist_ok=True)
            shutil.copy(file, out / folder)
    if recordings and (recordings / 'gallery').is_dir():
        shutil.copytree(recordings / 'gallery', out / 'recordings/gallery', ignore=shutil.ignore_patterns('*.gz'))
    print(f'tutorial: {len(chapters)} chapters, {len(formulas.all)} formulas, {len(shown)} recordings')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('out', type=pathlib.Path)
    parser.add_argument('--recordings', type=pathlib.Path)
    a = parser.parse_args()
    build(a.out.absolute(), a.recordings and a.recordings.absolute())


if __name__ == '__main__':
    main()
