import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { stripVTControlCharacters } from 'node:util';

/** Where and how a program runs. */
export interface ProgramOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

/** How a program ended, and what it said. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  /** The same, and behind it what it said on stderr. */
  readonly output: string;
}

/** Runs a program to its end, however it ends. */
export async function endOf(
  program: string,
  args: readonly string[],
  { cwd, env = {}, timeoutMs = 240_000 }: ProgramOptions,
): Promise<Ended> {
  return await new Promise((resolve) => {
    const options = { cwd, env: { ...ordinaryEnv(), ...env }, timeout: timeoutMs, maxBuffer: 2 ** 26 };
    execFile(program, args, options, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      const [plain, plainErrors] = [stdout, stderr].map(stripVTControlCharacters);
      resolve({ code, stdout: plain ?? '', output: `${plain}${plainErrors}` });
    });
  });
}

/**
 * Runs a program that is expected to succeed; answers what it said on stdout.
 *
 * @throws Error with what it said, when it does not
 */
export async function run(
  program: string,
  args: readonly string[],
  options: ProgramOptions,
): Promise<string> {
  const { code, stdout, output } = await endOf(program, args, options);
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${output}`);
  return stdout;
}

/** A program that goes on until it is stopped. */
export interface Running {
  output(): string;
  hasEnded(): boolean;
  stop(): Promise<void>;
}

export function start(program: string, args: readonly string[], { cwd, env = {} }: ProgramOptions): Running {
  // A process group of its own, so that a stop reaches what it has started as well.
  const child = spawn(program, args, { cwd, env: { ...ordinaryEnv(), ...env }, detached: true });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const closed = once(child, 'close');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  return {
    output: () => output,
    hasEnded,
    async stop() {
      if (!hasEnded() && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      await closed;
    },
  };
}

/** The environment of a user's shell: without what npm, vitest and the way of running these tests have added. */
export function ordinaryEnv(): NodeJS.ProcessEnv {
  const added =
    /^(npm_(?!config_(cache|registry|userconfig|globalconfig)$)|VITEST|NODE_(ENV|OPTIONS)$|INIT_CWD$|DRIZZLE$|TEST$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !added.test(name)));
}
