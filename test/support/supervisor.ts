import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Answer, Request } from './postgres-supervisor.mjs';

/** What a request is made of, without the id that this module adds. */
type Command = Request extends infer R ? (R extends Request ? Omit<R, 'id'> : never) : never;

/** The process that owns a server; see `postgres-supervisor.mjs`. */
export class Supervisor {
  readonly #process: ChildProcess;
  readonly #ended: Promise<void>;
  readonly #pending = new Map<number, (answer: Answer) => void>();
  #lastId = 0;

  /** Starts the process. */
  constructor() {
    // NODE_OPTIONS may name loaders and debuggers, which are meant for this process only.
    const { NODE_OPTIONS: _, ...env } = process.env;
    this.#process = spawn(
      process.execPath,
      [fileURLToPath(new URL('postgres-supervisor.mjs', import.meta.url))],
      {
        // Outside the terminal's process group, whose Ctrl-C would end the server before its clients.
        detached: true,
        env,
        stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      },
    );
    this.#ended = new Promise((resolve) => {
      const onEnd = (reason: string): void => {
        for (const [id, settle] of this.#pending) settle({ id, error: reason });
        resolve();
      };
      this.#process.once('error', (error) => onEnd(`cannot run ${process.execPath}: ${error.message}`));
      this.#process.once('exit', () => onEnd('the process that runs PostgreSQL has ended'));
    });
    this.#process.on('message', (answer: Answer) => this.#pending.get(answer.id)?.(answer));
    this.#keepAlive(false);
  }

  /** Has a command carried out, after all earlier ones, and returns its result. */
  async request(command: Command): Promise<unknown> {
    const id = ++this.#lastId;
    this.#keepAlive(true);
    try {
      const answer = await new Promise<Answer>((resolve) => {
        this.#pending.set(id, resolve);
        const request: Request = { id, ...command };
        this.#process.send(request, (error) => {
          if (error) resolve({ id, error: error.message });
        });
      });
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer.result;
    } finally {
      this.#pending.delete(id);
      this.#keepAlive(this.#pending.size > 0);
    }
  }

  /** Stops the server, removes its files and waits for that. Can be called again. */
  async end(): Promise<void> {
    if (this.#process.connected) this.#process.disconnect();
    this.#process.ref();
    await this.#ended;
  }

  /** Says whether this process has to stay alive for the sake of the other one. */
  #keepAlive(needed: boolean): void {
    if (needed) {
      this.#process.ref();
      this.#process.channel?.ref();
    } else {
      this.#process.unref();
      this.#process.channel?.unref();
    }
  }
}
