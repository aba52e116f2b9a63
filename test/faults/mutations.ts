/**
 * Shows that the fault suite bites: breaks the library in one place after the other, in a copy, and runs the tests that must notice;
 * first each of them with the library as it is, since one that fails anyway notices nothing. `npm run test:faults:mutations`, and a part
 * of its name for one of them only. Takes some minutes; exits with 1 when a broken library passes, or the whole one fails.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Mutation, mutations, pattern } from './mutation-list.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const copy = mkdtempSync(join(tmpdir(), 'drizzle-queue-mutations-'));
process.once('exit', () => rmSync(copy, { recursive: true }));
for (const name of [
  'src',
  'test',
  'drizzle',
  'drizzle-control',
  'drizzle-metrics',
  'drizzle-workflows',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
  'vitest.faults.config.ts',
])
  cpSync(join(root, name), join(copy, name), {
    recursive: true,
    filter: (path) => !path.endsWith('node_modules'),
  });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));

/** Runs one test in the copy; answers whether it passed, and what it said. */
function run([file, name]: Mutation['test']): { readonly passed: boolean; readonly output: string } {
  const config = file.startsWith('faults/') ? 'vitest.faults.config.ts' : 'vitest.config.ts';
  const { status, stdout, stderr } = spawnSync(
    'npx',
    ['vitest', 'run', '--config', config, `test/${file}.test.ts`, '-t', name],
    { cwd: copy, encoding: 'utf8', env: { ...process.env, NO_COLOR: '1', DEPTH: 'full' } },
  );
  return { passed: status === 0, output: stdout + stderr };
}

/** Breaks the copy, and answers what mends it. */
function apply({ name, edits }: Mutation): () => void {
  const before = edits.map(({ file }) => [join(copy, file), readFileSync(join(copy, file), 'utf8')] as const);
  for (const { file, text, by } of edits) {
    const source = readFileSync(join(copy, file), 'utf8');
    const found = pattern(text);
    if (!found.test(source)) throw new Error(`'${name}' is out of date: ${file} does not contain ${text}`);
    writeFileSync(
      join(copy, file),
      source.replace(found, () => by),
    );
  }
  return () => {
    // Backwards, as a file may be edited twice.
    for (const [path, source] of before.reverse()) writeFileSync(path, source);
  };
}

const chosen = mutations.filter(({ name }) => name.includes(process.argv[2] ?? ''));
if (chosen.length === 0) throw new Error(`there is no mutation '${process.argv[2]}'`);
// Before hours are spent on the first of them.
for (const mutation of chosen) apply(mutation)();
for (const test of new Map(chosen.map(({ test }) => [test.join(': '), test])).values()) {
  const { passed: green, output } = run(test);
  // Also when there is no test of that name.
  const passed = green && /Tests +1 passed/.test(output);
  console.log(`${passed ? 'passes' : 'FAILS'} with the library as it is: ${test.join(': ')}`);
  if (passed) continue;
  console.log(output);
  process.exit(1);
}
for (const mutation of chosen) {
  const mend = apply(mutation);
  const { passed, output } = run(mutation.test);
  mend();
  const first = output.split('\n').find((line) => /^(AssertionError|Error|TypeError)/.test(line.trim()));
  // A test that did not run has noticed nothing.
  const ran = /Tests {2}1 failed/.test(
    output.replace(/ +/g, (spaces) => (spaces.length > 1 ? '  ' : spaces)),
  );
  if (passed || !ran) process.exitCode = 1;
  console.log(`${passed ? 'NOT NOTICED' : ran ? 'noticed' : 'DID NOT RUN'}: ${mutation.name}`);
  console.log(`  by ${mutation.test.join(': ')}${first === undefined ? '' : `\n  ${first.trim()}`}`);
  if (!passed && !ran) console.log(output);
}
