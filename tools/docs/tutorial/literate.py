#!/usr/bin/env python3
"""The tutorial's chapters as programs: every block of code in them is compiled and run.

  literate.py extract CHAPTER.md DIR [--record]          writes chapter_NN.cc and the files that the chapter gives names
  literate.py check CHAPTER.md PROGRAM [--root DIR]      runs the program; does it print what the page shows?
  literate.py update CHAPTER.md PROGRAM                  writes what it prints into the page

Blocks of a chapter, by the words after the three backticks:

  cpp                   at file scope
  cpp main              statements: all of them, in order, are one function
  cpp file=NAME         a part of the file NAME, next to the program
  cpp quote=PATH        lines of the file PATH in this repository; a line `// ...` leaves some out
  cpp solution=N        as `cpp`, of exercise N: in a namespace of its own
  cpp solution=N main   as `cpp main`, of exercise N: a function of its own
  output                what the `main` block before it prints. Without one it prints nothing
  output numbers=near   the same, where the last digits depend on the processor: numbers may differ by 2 % (and by 0.02)
  output numbers=vary   the same, where numbers are times: they may be any, the words may not
  recording NAME        what the program did from the block `cpp main record=NAME` to here, as a page of the explorer: with --record
                        the program is recorded_NN.cc, and writes it to FOLDER/NN_NAME.html, FOLDER being its argument. The
                        text of the block is the page's title. `watch=NET` together with `record=` names a module to be watched
  text                  a drawing: nothing is run

In other text, `folder/file.h` is a file of this repository, and Note [Name] a comment in it: both are looked up.
"""
import argparse
import os
import re
import subprocess
import sys

MARK = '\x1e'  # before the output of each block


class Block:
    def __init__(self, words, line):
        self.kind = words[0] if words else 'text'
        self.flags = {w for w in words[1:] if '=' not in w}
        self.values = dict(w.split('=', 1) for w in words[1:] if '=' in w)
        self.line = line  # of the page, counted from 1: the first one inside
        self.text = []

    @property
    def code(self):
        return self.kind == 'cpp'

    @property
    def main(self):
        return self.code and 'main' in self.flags

    @property
    def solution(self):
        return int(self.values.get('solution', 0))


def fail(text):
    sys.exit('literate.py: ' + text)


def parse(path):
    """The lines of a page, and its blocks."""
    with open(path, encoding='utf-8') as f:
        lines = f.read().split('\n')
    blocks, block = [], None
    for number, line in enumerate(lines, 1):
        if block is not None and line.rstrip() == '```':
            block = None
        elif block is not None:
            block.text.append(line)
        elif line.startswith('```'):
            block = Block(line[3:].split(), number + 1)
            known = {'cpp': {'main', 'file', 'quote', 'solution', 'record', 'watch'}, 'output': {'numbers'}, 'text': set()}
            if block.kind == 'recording' and len(block.flags) == 1:
                block.values['name'] = block.flags.pop()
            elif block.kind not in known or not (block.flags | set(block.values)) <= known[block.kind]:
                fail(f'{path}:{number}: what kind of block is "{line}"? (--help lists them)')
            blocks.append(block)
    if block is not None:
        fail(f'{path}:{block.line - 1}: a block that does not end')
    return lines, blocks


def number_of(path):
    return os.path.basename(path)[:2]


def runs(path, blocks):
    """[block, its output or None, its recording or None], in the order in which the program runs them."""
    found, last = [], None
    for b in blocks:
        if b.main:
            last = [b, None, None]
            found.append(last)
        elif b.kind in ('output', 'recording'):
            if last is None:
                fail(f'{path}:{b.line}: no `main` block before this one')
            last[1 if b.kind == 'output' else 2] = b
        elif b.code:
            last = None
    begun = {r[0].values['record'] for r in found if 'record' in r[0].values}
    ended = {r[2].values['name'] for r in found if r[2]}
    if begun != ended:
        fail(f'{path}: recordings begun: {sorted(begun)}, shown: {sorted(ended)}')
    return sorted(found, key=lambda r: r[0].solution)


def extract(path, folder, record):
    _, blocks = parse(path)
    name = os.path.basename(path)
    solutions = sorted({b.solution for b in blocks if b.solution})
    files = {}
    out = [f'// Made of {name} by literate.py.']
    for b in blocks:
        if 'file' in b.values:
            files.setdefault(b.values['file'], []).extend([f'#line {b.line} "{name}"'] + b.text)
        elif b.code and not b.main and not b.solution and 'quote' not in b.values:
            out += [f'#line {b.line} "{name}"'] + b.text
    order = runs(path, blocks)
    titles = {r[2].values['name']: ' '.join(r[2].text).strip().replace('"', "'") for r in order if r[2]}
    if record and any(r[2] for r in order):
        out += ['#include "tools/see/explore.h"', '#include "tools/see/recording.h"']
    out += ['#include <iostream>', '#include <string>']
    if record:
        out += ['static std::string folder_of_pages;']
    for k in [0] + solutions:
        mine = [b for b in blocks if b.code and b.solution == k and not b.main and not b.values.keys() & {'file', 'quote'}]
        if k:
            out += [line for b in mine for line in b.text if line.startswith('#include')]
            out += [f'namespace solution_{k} {{']
            for b in mine:
                out += [f'#line {b.line} "{name}"'] + ['' if line.startswith('#include') else line for line in b.text]
        out += ['static void run() {' if k else 'static void run_chapter() {']
        for i, (b, _, recording) in enumerate(order):
            if b.solution != k:
                continue
            out += [f'std::cout << "\\n{MARK}{i}" << std::endl;']
            if record and 'record' in b.values:
                page = b.values['record']
                out += ['ramet::see::RecordingOptions options_%s;' % page,
                        'options_%s.title = "%s", options_%s.statistics = true;' % (page, titles[page], page),
                        'ramet::see::Recording recording_%s(options_%s);' % (page, page)]
                if 'watch' in b.values:
                    out += ['recording_%s.watch(%s);' % (page, b.values['watch'])]
            out += [f'#line {b.line} "{name}"'] + b.text
            if record and recording:
                page = recording.values['name']
                out += [f'recording_{page}.stop();',
                        f'ramet::see::explore(recording_{page}, folder_of_pages + "/{number_of(path)}_{page}.html");']
        out += ['}'] + (['}  // namespace'] if k else [])
    out += ['int main(int, char** argv) {', 'folder_of_pages = argv[1];'] if record else ['int main() {']
    if any('ramet.h' in line for b in blocks if b.code and 'file' not in b.values for line in b.text if line.startswith('#include')):
        out += ['ramet::manual_seed(ramet::kDefaultSeed);']
    out += ['run_chapter();'] + [f'solution_{k}::run();' for k in solutions] + ['}']
    files[f'{"recorded" if record else "chapter"}_{number_of(path)}.cc'] = out
    os.makedirs(folder, exist_ok=True)
    for file, text in files.items():
        with open(os.path.join(folder, file), 'w', encoding='utf-8') as f:
            f.write('\n'.join(text) + '\n')


def printed(path, program, count):
    """What each block printed, in the program's order."""
    done = subprocess.run([os.path.abspath(program)], stdout=subprocess.PIPE, timeout=300)
    text = done.stdout.decode('utf-8', 'replace')
    if done.returncode != 0:
        fail(f'{path}: the program ended with {done.returncode}; the last it printed:\n{text[-2000:]}')
    parts = text.split('\n' + MARK)
    if len(parts) != count + 1:
        fail(f'{path}: {count} blocks, and output of {len(parts) - 1}: is the program of this page?')
    return [p.split('\n', 1)[1].rstrip().split('\n') for p in parts[1:]]


NUMBER = r'[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?'


def differ(got, out):
    """What the page shows and what was printed, where they are not the same; else None."""
    numbers = out.values.get('numbers') if out else None
    shown, new = ('\n'.join(line.rstrip() for line in text).strip('\n') for text in (out.text if out else [], got))
    if not numbers:
        return None if shown == new else (shown, new)
    words = [re.sub(r'\s+', ' ', re.sub(NUMBER, '#', t)) for t in (shown, new)]
    if words[0] != words[1]:
        return shown, new
    pairs = zip(*(map(float, re.findall(NUMBER, t)) for t in (shown, new)))
    return None if numbers == 'vary' or all(abs(a - b) <= 0.02 * max(1, abs(a)) for a, b in pairs) else (shown, new)


def look_up(path, lines, blocks, root):
    """Files and Notes that the text names, and lines that it quotes."""
    wrong = []

    def content(file):
        try:
            with open(os.path.join(root, file), encoding='utf-8') as f:
                return f.read()
        except OSError:
            return None

    inside, prose = False, []
    for number, line in enumerate(lines, 1):
        if line.startswith('```'):
            inside = not inside
        elif not inside:
            prose.append((number, line))
    files = []
    for number, line in prose:
        for file in re.findall(r'`((?:[\w.]+/)+[\w.]+\.(?:h|cc|cu|inc|md|py|sh)|[A-Z]+\.md|ramet\.h)`', line):
            if content(file) is None:
                wrong.append(f'{path}:{number}: there is no file {file}')
            else:
                files.append(file)
    for note in re.findall(r'Note\s+\[([^\]]+)\]', re.sub(r'\s+', ' ', ' '.join(line for _, line in prose))):
        if not any(f'Note [{note}]' in re.sub(r'\s*\n\s*(//)?\s*', ' ', content(f)) for f in files):
            wrong.append(f'{path}: Note [{note}] stands in no file that the page names')
    for b in blocks:
        if 'quote' not in b.values:
            continue
        file = content(b.values['quote'])
        if file is None:
            wrong.append(f'{path}:{b.line}: there is no file {b.values["quote"]}')
            continue
        def squeeze(text):
            return re.sub(r'\s+', ' ', text).strip()
        there, at = squeeze(file), 0
        for part in re.split(r'^\s*// \.\.\.\s*$', '\n'.join(b.text), flags=re.M):
            at = there.find(squeeze(part), at)
            if at < 0:
                wrong.append(f'{path}:{b.line}: {b.values["quote"]} has no such lines:\n{part}')
                break
    return wrong


def check(path, program, root):
    lines, blocks = parse(path)
    order = runs(path, blocks)
    wrong = look_up(path, lines, blocks, root) if root else []
    solved = {b.solution for b in blocks if b.solution}
    if solved != {1, 2, 3}:
        wrong.append(f'{path}: three exercises with solutions are expected, got {sorted(solved)}')
    for (b, out, _), got in zip(order, printed(path, program, len(order))):
        found = differ(got, out)
        if found:
            wrong.append('%s:%d: the page shows\n%s\n  and the program printed\n%s' % ((path, (out or b).line) + found))
    if wrong:
        sys.exit('\n'.join(wrong))
    print(f'{os.path.basename(path)}: {len(order)} blocks print what the page shows')


def update(path, program):
    lines, blocks = parse(path)
    order = runs(path, blocks)
    new = list(zip(order, printed(path, program, len(order))))
    new.sort(key=lambda n: -n[0][0].line)
    for (b, out, _), got in new:
        if not differ(got, out):
            continue
        if not out:
            end = b.line - 1 + len(b.text)
            lines[end + 1:end + 1] = ['', '```output'] + got + ['```']
        else:
            lines[out.line - 1:out.line - 1 + len(out.text)] = got
    with open(path, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('what', choices=['extract', 'check', 'update'])
    parser.add_argument('chapter')
    parser.add_argument('where')
    parser.add_argument('--record', action='store_true')
    parser.add_argument('--root', default='')
    a = parser.parse_args()
    if a.what == 'extract':
        extract(a.chapter, a.where, a.record)
    elif a.what == 'check':
        check(a.chapter, a.where, a.root)
    else:
        update(a.chapter, a.where)


if __name__ == '__main__':
    main()
