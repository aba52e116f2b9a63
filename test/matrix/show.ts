import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Combination } from './combinations.ts';
import type { Report, Request } from './report.ts';

/** What a combination has shown. */
export interface Shown {
  readonly combination: Combination;
  readonly passed: number;
  readonly skipped: number;
  /** One text for each behaviour that failed, and for a process that did not end as it should. */
  readonly failures: readonly string[];
  readonly durationMs: number;
}

/** All behaviours together; then the process is ended. */
const LIMIT_MS = 240_000;
/** What the process may take to end, once it has closed its driver: nothing of the library may keep it alive. */
const END_MS = 15_000;

/** Has the behaviours shown by a process of its own. */
export async function show(
  combination: Combination,
  { command, request }: { readonly command: readonly [string, string]; readonly request: Request },
): Promise<Shown> {
  const startedAt = performance.now();
  const reports: Report[] = [];
  let output = '';
  const [program, bundle] = command;
  const child = spawn(program, [bundle], {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    env: { ...process.env, NODE_OPTIONS: '', MATRIX_REQUEST: JSON.stringify(request) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let killed: string | undefined;
  const kill = (reason: string) => () => {
    killed = reason;
    child.kill('SIGKILL');
  };
  const limit = setTimeout(kill(`did not end within ${LIMIT_MS} ms`), LIMIT_MS);
  let end: NodeJS.Timeout | undefined;
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      // The program prints nothing else; what a runtime or a driver does is shown if something fails.
      if (!line.startsWith('{"name":')) output += `${line}\n`;
      else reports.push(JSON.parse(line));
    }
    if (reports.at(-1)?.name === 'closes') end ??= setTimeout(kill('did not end by itself'), END_MS);
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const code = await new Promise<number | string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', resolve);
  });
  clearTimeout(limit);
  clearTimeout(end);
  const failures = reports.flatMap((report) =>
    'error' in report ? [`${report.name}\n${indent(report.error)}`] : [],
  );
  // A behaviour that failed may have left a worker behind, which is then no failure of its own.
  if (failures.length === 0 && (code !== 0 || reports.at(-1)?.name !== 'closes')) {
    const after = reports.at(-1)?.name ?? 'nothing';
    failures.push(
      `the process ${killed ?? `ended with ${code}`}, after: ${after}\n${indent(output.slice(-4_000))}`,
    );
  }
  return {
    combination,
    passed: reports.filter((report) => 'durationMs' in report && report.name !== 'closes').length,
    skipped: reports.filter((report) => 'skipped' in report).length,
    failures,
    durationMs: performance.now() - startedAt,
  };
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, '    ');
}
