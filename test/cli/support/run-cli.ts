import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { onTestFinished } from 'vitest';
import { until } from '../../support/until.ts';

/** How a command runs. */
export interface CliOptions {
  readonly cwd: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What is typed, or piped into it. */
  readonly input?: string;
}

/** How a command has ended, and what it has said. */
export interface CliEnd {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A command that runs. */
export interface RunningCli {
  readonly child: ChildProcess;
  stdout(): string;
  stderr(): string;
  write(text: string): void;
  /** Waits until it has said this on either stream. */
  says(text: string | RegExp): Promise<void>;
  end(): Promise<CliEnd>;
}

/** The variables of a shell in which nothing is said about a database or colours. */
function plainEnv(): NodeJS.ProcessEnv {
  const set = /^(DATABASE_URL|PG|NO_COLOR|FORCE_COLOR|NODE_OPTIONS|VITEST|DEBUG|CI$|TERM$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !set.test(name)));
}

/** Starts the command as a child process, and kills it at the end of the test, should it still run. */
export function startCli(bin: string, args: readonly string[], options: CliOptions): RunningCli {
  return start(process.execPath, [bin, ...args], options);
}

/** Runs the command to its end. */
export async function runCli(bin: string, args: readonly string[], options: CliOptions): Promise<CliEnd> {
  const running = startCli(bin, args, options);
  running.child.stdin?.end(options.input ?? '');
  return await running.end();
}

const SCRIPT = '/usr/bin/script';

/** Whether there is a program that gives a command a terminal. */
export const hasTerminal: boolean = existsSync(SCRIPT);
if (!hasTerminal) console.info(`The tests with a terminal are skipped: there is no ${SCRIPT}`);

/** Starts the command in a terminal of 100 columns or so many, as util-linux's `script` makes one. */
export function startInTerminal(
  bin: string,
  args: readonly string[],
  { columns = 100, rows = 40, ...options }: CliOptions & { columns?: number; rows?: number },
): RunningCli {
  const quoted = [process.execPath, bin, ...args].map((each) => `'${each.replaceAll("'", "'\\''")}'`);
  const command = `stty cols ${columns} rows ${rows}; exec ${quoted.join(' ')}`;
  return start(SCRIPT, ['-qefc', command, '/dev/null'], {
    ...options,
    env: { TERM: 'xterm-256color', ...options.env },
  });
}

function start(program: string, args: readonly string[], { cwd, env }: CliOptions): RunningCli {
  const child = spawn(program, args, { cwd, env: { ...plainEnv(), ...env }, stdio: 'pipe', detached: true });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
  });
  // A command that has ended reads no more.
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close');
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  onTestFinished(() => {
    if (!hasEnded() && child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  });
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    write: (text) => child.stdin.write(text),
    async says(text) {
      await until(() => {
        const said = stdout + stderr;
        if (typeof text === 'string' ? said.includes(text) : text.test(said)) return true;
        if (hasEnded()) throw new Error(`it has ended without saying ${text}:\n${said}`);
        return false;
      }).catch((error: unknown) => {
        throw new Error(`waited for ${text}, and it has said:\n${stdout}${stderr}`, { cause: error });
      });
    },
    async end() {
      await closed;
      return { code: child.exitCode, stdout, stderr };
    },
  };
}
