import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Answer, Commands, Request } from '../child/commands.ts';
import { bundleChild } from './bundle-child.ts';

/** Every process that runs, so that none outlives this one. */
const running = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

/** A process in which something is measured: it has an event loop of its own, and says what it has done when it is asked. */
export class Child {
  readonly #process: ChildProcess;
  readonly #pending = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  private constructor(program: string) {
    this.#process = spawn(process.execPath, ['--enable-source-maps', '--expose-gc', program], {
      cwd: fileURLToPath(new URL('../..', import.meta.url)),
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    running.add(this.#process);
    this.#process.on('message', (answer: Answer) => this.#pending.get(answer.id)?.(answer));
    this.#process.once('exit', (code, signal) => {
      running.delete(this.#process);
      for (const [id, settle] of this.#pending)
        settle({ id, error: `The process has ended: ${code ?? signal}` });
    });
  }

  static async start(): Promise<Child> {
    return new Child(await bundleChild());
  }

  get pid(): number {
    return this.#process.pid ?? Number.NaN;
  }

  /** Has something done in the process, and answers what came of it. */
  async call<K extends keyof Commands>(
    method: K,
    ...args: Parameters<Commands[K]>
  ): Promise<Awaited<ReturnType<Commands[K]>>> {
    const id = ++this.#lastId;
    const answer = await new Promise<Answer>((resolve) => {
      this.#pending.set(id, resolve);
      const request: Request = { id, method, args };
      this.#process.send(request, (error) => {
        if (error) resolve({ id, error: error.message });
      });
    });
    this.#pending.delete(id);
    if (answer.error !== undefined) throw new Error(`In the process for ${method}: ${answer.error}`);
    // The other side calls the method of this name.
    return answer.result as Awaited<ReturnType<Commands[K]>>;
  }

  /** Ends what it does, in good order, and the process. */
  async end(): Promise<void> {
    const exited = new Promise((resolve) => this.#process.once('exit', resolve));
    await this.call('stop');
    this.#process.disconnect();
    const late = setTimeout(() => this.#process.kill('SIGKILL'), 10_000);
    await exited;
    clearTimeout(late);
  }
}
