import { readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import ts from 'typescript';
import { expect, test } from 'vitest';
import { root } from './pages.ts';

const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');

/** The files of the way of a plain job, in order. */
const way = [...page.matchAll(/^\| (\d+) \| \[[^\]]+\]\(\.\.\/(src\/[^)]+)\) \|/gm)].map(
  ([, row, path = '']) => ({ row: Number(row), path }),
);

/** The files whose code a file imports. What it knows by its type alone is not among them. */
function importsOf(path: string): string[] {
  const file = ts.createSourceFile(path, readFileSync(join(root, path), 'utf8'), ts.ScriptTarget.Latest);
  return file.statements.flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return [];
    if (statement.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword) return [];
    return [posix.join(posix.dirname(path), statement.moduleSpecifier.text)];
  });
}

test('the way of a plain job has at most 20 files, all of the core, on a page of at most 100 lines', () => {
  expect(way.map(({ row }) => row)).toEqual(way.map((_, at) => at + 1));
  expect(way.length).toBeGreaterThan(15);
  expect(way.length).toBeLessThanOrEqual(20);
  expect(way.filter(({ path }) => !path.startsWith('src/core/'))).toEqual([]);
  expect(page.trimEnd().split('\n').length).toBeLessThanOrEqual(100);
});

test('no file of it imports code of one before it, except what a job is', () => {
  const back = way.flatMap(({ path }, at) => {
    const before = way.slice(0, at).map((earlier) => earlier.path);
    return importsOf(path)
      .filter((target) => before.includes(target) && !target.startsWith('src/core/job/'))
      .map((target) => `${path} imports ${target}`);
  });
  expect(back).toEqual([]);
  const ofEndings = importsOf('src/core/worker/settle/endings.ts');
  expect(ofEndings).toContain('src/core/job/transition.ts');
  // Its type alone.
  expect(ofEndings).not.toContain('src/core/worker/run/attempt.ts');
});

test('what became of a job is returned: only of one that was put back a function of the claims is told', () => {
  const settling = way.filter(
    ({ path }) => path.includes('/worker/settle/') || path.endsWith('/attempts.ts'),
  );
  expect(settling.map(({ row }) => row)).toEqual([10, 15, 17, 18, 20]);
  const told = settling.flatMap(({ path }) =>
    [...readFileSync(join(root, path), 'utf8').matchAll(/^ {2}readonly (on[A-Z]\w*):/gm)].map(
      ([, name]) => name,
    ),
  );
  expect(told).toEqual(['onPutBack']);
  const rooms = way.filter(({ row }) => row >= 15).map(({ path }) => path.split('/')[2]);
  expect([...new Set(rooms)]).toEqual(['worker', 'job', 'queries']);
});

test('the words of the glossary are in their order', () => {
  const glossary = readFileSync(join(root, 'docs/glossary.md'), 'utf8');
  const words = [...glossary.matchAll(/^\| \*\*(.+?)\*\* \|/gm)].map(([, word = '']) => word.toLowerCase());
  expect(words.length).toBeGreaterThan(90);
  expect(words).toEqual(words.toSorted());
});
