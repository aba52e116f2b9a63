import { spawn } from 'node:child_process';
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

/** Runs a program to its end, however it ends; after `timeoutMs` it is killed with all that it has started. */
export async function endOf(
  program: string,
  args: readonly string[],
  { timeoutMs = 580_000, ...options }: ProgramOptions,
): Promise<Ended> {
  const running = start(program, args, options);
  const timer = setTimeout(running.kill, timeoutMs);
  const code = await running.ended;
  clearTimeout(timer);
  return { code, stdout: running.stdout(), output: running.output() };
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

/** A program that goes on until it ends or is stopped. */
export interface Running {
  readonly pid: number;
  stdout(): string;
  output(): string;
  /** Its exit code; 1 when it was killed, or could not be started. */
  readonly ended: Promise<number>;
  hasEnded(): boolean;
  /** Sends a signal to the program alone, and not to what it has started: as a platform does to the first process of a container. */
  signal(name: NodeJS.Signals): void;
  /** What Ctrl-C does in a terminal: interrupts it with all that it has started. */
  interrupt(): void;
  kill(): void;
  stop(): Promise<void>;
}

export function start(program: string, args: readonly string[], { cwd, env = {} }: ProgramOptions): Running {
  // A process group of its own, so that a kill reaches what it has started as well.
  const child = spawn(program, args, {
    cwd,
    env: { ...ordinaryEnv(), ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, output] = ['', ''];
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
    output += chunk;
  });
  child.stderr.on('data', (chunk) => {
    output += chunk;
  });
  child.on('error', (error) => {
    output += error;
  });
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const toAll = (name: NodeJS.Signals) => {
    if (!hasEnded() && child.pid !== undefined) process.kill(-child.pid, name);
  };
  const kill = () => toAll('SIGKILL');
  // Tests that are interrupted leave nothing behind.
  process.once('exit', kill);
  const ended = new Promise<number>((resolve) => {
    child.on('close', (code) => {
      process.off('exit', kill);
      resolve(code ?? 1);
    });
  });
  return {
    // None when it could not be started; then it has ended with an error, too.
    pid: child.pid ?? 0,
    stdout: () => stripVTControlCharacters(stdout),
    output: () => stripVTControlCharacters(output),
    ended,
    hasEnded,
    signal: (name) => void child.kill(name),
    interrupt: () => toAll('SIGINT'),
    kill,
    async stop() {
      kill();
      await ended;
    },
  };
}

/** The environment of a user's shell: without what npm, vitest and the way of running these tests have added. */
export function ordinaryEnv(): NodeJS.ProcessEnv {
  const added =
    /^(npm_(?!config_(cache|registry|userconfig|globalconfig)$)|VITEST|NODE_(ENV|OPTIONS)$|INIT_CWD$|DRIZZLE$|TEST$)/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !added.test(name)));
}
