import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readPages, root } from './pages.ts';

/** What a newcomer is told to run, each command once. */
function newcomersCommands(): string[] {
  const page = readPages().find(({ path }) => path === 'README.md');
  const block = page?.blocks.find(({ language, code }) => language === 'sh' && code.includes('npm test'));
  return [...new Set(block?.code.trim().split(/\s*(?:&&|\n)\s*/))];
}

/** The commands of CI that stand on a line of their own. */
function ciCommands(): string[] {
  const lines = readFileSync(join(root, '.ci/run'), 'utf8').split('\n');
  return lines.filter((line) => /^(?:[A-Z]+=\S+ )?npm /.test(line));
}

test('CI begins with exactly the commands of the README', () => {
  const commands = newcomersCommands();
  expect(commands).toEqual(['npm ci', 'npm run demo', 'npm test']);
  expect(ciCommands().slice(0, commands.length)).toEqual(commands);
});

test('CI runs what npm test leaves out, too', () => {
  expect(ciCommands()).toContain('npm run test:all -- --landing');
});
