import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { node } from '../../bench/install.ts';

/** A program that is told JSON in its argument, and says a line of JSON now and then. */
export class Program {
  readonly said: unknown[] = [];
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #end: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;

  private constructor(command: string, args: readonly string[]) {
    this.#process = spawn(command, args, {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const kill = () => this.#process.kill('SIGKILL');
    process.once('exit', kill);
    let rest = '';
    this.#process.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = `${rest}${text}`.split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.said.push(JSON.parse(line));
    });
    this.#end = once(this.#process, 'close').then(([code, signal]) => {
      process.off('exit', kill);
      return { code, signal };
    });
  }

  /** One of `peers/`, with the Node.js that they need. */
  static peer(name: string, options: object): Program {
    const program = new Program(node, [path(`peers/${name}.mjs`)]);
    program.#process.stdin.write(`${JSON.stringify(options)}\n`);
    return program;
  }

  /** One of `programs/`, with the Node.js that runs the tests. */
  static own(name: string, options: object): Program {
    return new Program(process.execPath, [
      '--import',
      'tsx',
      path(`programs/${name}.ts`),
      JSON.stringify(options),
    ]);
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  /** Waits for its end. @throws when it was not a good one */
  async ended(): Promise<void> {
    const { code, signal } = await this.#end;
    if (code !== 0) throw new Error(`The program has ended with ${code ?? signal}`);
  }

  /** Waits until it is dead. */
  async dead(): Promise<NodeJS.Signals | null> {
    return (await this.#end).signal;
  }

  /** Asks a peer's worker to stop, and waits until it has. */
  async stop(): Promise<void> {
    this.#process.stdin.end();
    await this.ended();
  }
}

function path(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}
