import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { leftOut } from '../package/landing.ts';
import { root } from './pages.ts';

test('apps of frameworks are left out before a landing, unless it changes them', () => {
  const all = leftOut([]);
  expect(all).toContain('test/package/guide-next.test.ts');
  expect(all.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  const without = (...changed: string[]) => all.filter((path) => !leftOut(changed).includes(path));
  expect(without('docs/guides/nextjs.md')).toEqual(['test/package/guide-next.test.ts']);
  expect(without('test/package/jest.test.ts')).toEqual(['test/package/jest.test.ts']);
  expect(without('test/package/fixtures/apps/next/package.json')).toEqual([
    'test/package/container.test.ts',
    'test/package/guide-next.test.ts',
  ]);
  expect(without('src/index.ts')).toEqual([]);
  expect(leftOut(undefined)).toEqual([]);
});

test('what a landing leaves out runs on GitHub', () => {
  const workflow = readFileSync(join(root, '.github/workflows/test.yml'), 'utf8');
  for (const command of ['test:all -- --rest', 'test:all -- --repeated', 'test:package', 'test:faults'])
    expect(workflow).toContain(`run: npm run ${command}\n`);
  expect(workflow).toContain('DEPTH: full\n');
  expect(workflow).toContain('FAULTS: short\n');
  expect(workflow).not.toContain('landing');
});
