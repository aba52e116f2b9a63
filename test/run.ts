/**
 * Runs the tests, one run after the other, and ends with one line about all of them: `npm test`, `npm run check`,
 * `npm run test:all`. `test/runs.ts` says what each of them runs.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Run, runsOf } from './runs.ts';
import type { Progress } from './support/progress-reporter.ts';
import { type Ended, minutes, summary } from './support/summary.ts';

const terminal = process.stdout.isTTY;
/** How often the progress is printed: over itself on a terminal, and as one more line elsewhere. */
const PROGRESS_MS = terminal ? 500 : 30_000;
/** What goes to a pipe has colours all the same if that ends at a terminal. */
const colours = terminal && process.env.NO_COLOR === undefined ? { FORCE_COLOR: '1' } : {};
const plain = terminal || process.env.FORCE_COLOR !== undefined ? {} : { NO_COLOR: '1' };

const begun = performance.now();
const folder = mkdtempSync(join(tmpdir(), 'drizzle-queue-tests-'));
/** What is running at the moment, with the file that tells how far it has come. */
const running = new Map<Run, string>();
const ended: Ended[] = [];

const timer = setInterval(printProgress, PROGRESS_MS);
try {
  for (const together of runsOf(process.argv.slice(2))) {
    ended.push(...(await Promise.all(together.map(carryOut))));
  }
} finally {
  clearInterval(timer);
  rmSync(folder, { recursive: true });
}
const { line, ok } = summary(ended, performance.now() - begun);
print(`${line}\n`);
process.exitCode = ok ? 0 : 1;

/** Starts a run and waits for its end. What it prints while others run beside it is printed at its end. */
async function carryOut(run: Run, _: number, together: readonly Run[]): Promise<Ended> {
  const started = performance.now();
  const path = join(folder, `${randomUUID()}.json`);
  const [program, ...args] = run.command;
  const child = spawn(process.execPath, [join('node_modules', program), ...args], {
    env: { ...process.env, ...plain, ...colours, ...run.env, TEST_PROGRESS: path },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.set(run, path);
  if (terminal) printProgress();
  const kept: Buffer[] = [];
  const show = (data: Buffer) => (together.length > 1 || run.quiet ? kept.push(data) : print(data));
  for (const stream of [child.stdout, child.stderr]) stream.on('data', show);
  const code = await endOf(child);
  running.delete(run);

  const progress = progressIn(path);
  // A linter counts nothing, and neither does a run that breaks off before its first test.
  const { passed, failed, skipped } = progress ?? { passed: code === 0 ? 1 : 0, failed: 0, skipped: 0 };
  const failures = code === 0 ? failed : Math.max(1, failed);
  if (failures > 0 || !run.quiet) print(Buffer.concat(kept));
  const counts =
    progress === undefined ? (failures > 0 ? 'failed' : 'passed') : countsOf({ passed, failed: failures });
  print(`${clock()} ${run.title}: ${counts} in ${minutes(performance.now() - started)}\n`);
  const again = failures > 0 ? run.again(progress?.failedFiles ?? []) : undefined;
  return { passed, failed: failures, skipped, again };
}

/** The exit code of a process. The end of this process is also that of the other. */
async function endOf(child: ChildProcess): Promise<number | null> {
  // A terminal's Ctrl-C reaches both.
  const end = () => child.kill();
  process.once('SIGTERM', end);
  const [code] = await once(child, 'close');
  process.off('SIGTERM', end);
  return code;
}

function printProgress(): void {
  if (running.size === 0) return;
  const parts = [...running].map(([{ title }, path]) => {
    const progress = progressIn(path);
    if (progress === undefined || progress.files === 0) return title;
    return `${title}: ${progress.filesDone} of ${progress.files} files, ${countsOf(progress)}`;
  });
  const line = `${clock()} ${parts.join('; ')}`;
  if (!terminal) process.stdout.write(`${line}\n`);
  // It must not be wider than the terminal: only one line can be cleared.
  else process.stdout.write(`\r\x1b[K${line.slice(0, process.stdout.columns - 1)}`);
}

/** Prints over the progress. */
function print(text: string | Buffer): void {
  if (text.length === 0) return;
  if (terminal) process.stdout.write('\r\x1b[K');
  process.stdout.write(text);
}

function countsOf({ passed, failed }: Pick<Progress, 'passed' | 'failed'>): string {
  return failed > 0 ? `${passed} passed, ${failed} failed` : `${passed} passed`;
}

/** The time since the start. */
function clock(): string {
  return `[${minutes(performance.now() - begun)}]`;
}

function progressIn(path: string): Progress | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch {
    return undefined;
  }
}
