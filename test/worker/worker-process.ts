import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { until } from '../support/until.ts';

/** A worker in a process of its own. */
export interface WorkerProcess {
  readonly child: ChildProcess;
  /** What it has printed so far. */
  output(): string;
  /** Waits until it has printed a text. */
  printed(text: string): Promise<void>;
  /** Sends a signal; answers the exit code, or the signal's name when that has ended it. */
  end(signal: NodeJS.Signals): Promise<number | string>;
}

const repository = fileURLToPath(new URL('../..', import.meta.url));

/** Starts a program of `test/` with its imports of the library resolved to the sources. */
export function startWorkerProcess(program: string, env: Record<string, string>): WorkerProcess {
  return startProcess(['--import', 'tsx'], `test/${program}`, env);
}

/** Starts a program in plain JavaScript, or in whatever the options of Node.js make readable. */
export function startProcess(
  options: readonly string[],
  program: string,
  env: Record<string, string>,
): WorkerProcess {
  const drizzle = process.env.DRIZZLE === 'v1' ? ['--import', './test/support/drizzle-v1.mjs'] : [];
  const child = spawn(process.execPath, [...options, ...drizzle, program], {
    cwd: repository,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      output += chunk.toString();
    });
  }
  const exited = once(child, 'exit');
  return {
    child,
    output: () => output,
    async printed(text) {
      await until(() => {
        if (child.exitCode !== null) throw new Error(`the worker process has ended:\n${output}`);
        return output.includes(text);
      });
    },
    async end(signal) {
      child.kill(signal);
      const [code, killedBy] = await exited;
      return code ?? killedBy;
    },
  };
}
